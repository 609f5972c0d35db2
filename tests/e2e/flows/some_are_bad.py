"""Most mails do their work; a few end their process each time: in a step, in the body, over their attachment.

The mail's subject says what, its text how long a step takes (ms). The folder BOOKS is as for the claims.
"""

import ctypes
import os
import time
from pathlib import Path

from waypost import Mail, StepError, Workflow, idempotency_key, sleep

flow = Workflow("rows", address="rows@example.com", runs="message", env=["BOOKS"])


def begun(step: str) -> None:
    """Note that a body begins."""
    book = os.open(Path(os.environ["BOOKS"]) / "bodies", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(book, f"{idempotency_key()} {step} {os.getpid()} {time.time_ns() // 1_000_000}\n".encode())
    os.close(book)


@flow.step
def read(mail: Mail) -> str:
    begun("read")
    time.sleep(int(mail.text) / 1000)
    return mail.subject


@flow.step
def work(mail: Mail, kind: str) -> str:
    begun("work")
    time.sleep(int(mail.text) / 1000)
    if kind == "bad step":
        ctypes.string_at(0)
    if kind == "bad attachment":
        exec(mail.attachments[0].content, {})  # the attachment is code that ends whoever imports it
    return f"{kind}: done"


@flow.step
def close(kind: str) -> str:
    begun("close")
    return kind


@flow.run
async def run(mail: Mail) -> str:
    kind = await read(mail)
    if kind == "bad body":
        ctypes.string_at(0)
    if kind == "patient":
        await sleep(0.1)
    try:
        done = await work(mail, kind)
    except StepError as failed:
        done = f"{kind}: {failed.type}"
    return await close(done)
