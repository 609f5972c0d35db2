"""A step that does something dreadful the first time, and then is good; the mail's text says what.

The folder BOOKS is as for the claims.
"""

import os
import signal
import socket
import time
from pathlib import Path

from waypost import Mail, Workflow, idempotency_key

CONTROL, EVENTS = 3, 4

flow = Workflow("misbehaves", address="misbehaves@example.com", runs="message", env=["BOOKS"])


def begun(step: str) -> str:
    """Note that a body begins; its key."""
    key = idempotency_key()
    book = os.open(Path(os.environ["BOOKS"]) / "bodies", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(book, f"{key} {step} {os.getpid()} {time.time_ns() // 1_000_000}\n".encode())
    os.close(book)
    return key


@flow.step
def before(mail: Mail) -> str:
    begun("before")
    return mail.text.strip()


@flow.step
def misbehave(what: str) -> str:
    key = begun("misbehave")
    try:
        (Path(os.environ["BOOKS"]) / f"done-{key}").touch(exist_ok=False)
    except FileExistsError:
        return f"no {what} any more"
    match what:
        case "rubbish":
            os.write(CONTROL, os.urandom(4096))
        case "a frame of 4 GiB":
            os.write(CONTROL, b"\xff\xff\xff\xff")
        case "an empty frame":
            os.write(CONTROL, b"\0\0\0\0")
        case "a frame that nobody signed":
            os.write(CONTROL, b"\0\0\0\x03\x82\x40\x40")
        case "rubbish for the watchers":
            os.write(EVENTS, b"\0\0\0\x03\x82\x40\x40")
        case "a channel that is shut down":
            socket.socket(fileno=os.dup(CONTROL)).shutdown(socket.SHUT_RDWR)
        case "kill -9 of itself":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill -9 of the host":
            os.kill(os.getppid(), signal.SIGKILL)
        case "exit status 0":
            os._exit(0)
        case _:
            raise ValueError(what)
    signal.pause()  # whoever it has wronged ends it
    raise AssertionError("nobody did")


@flow.step
def after(what: str) -> str:
    begun("after")
    return what


@flow.run
async def run(mail: Mail) -> str:
    return await after(await misbehave(await before(mail)))
