"""Steps that use what was opened, and one that goes beyond each limit; the mail's text is a folder."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from waypost import Mail, StepError, Workflow

flow = Workflow("looks", address="looks@example.com", runs="message")


@flow.step
def use(folder: str) -> list[str]:
    (Path(folder) / "out" / "written").write_text("by the workflow")
    return [(Path(folder) / "in" / "given").read_text(), *sorted(path.name for path in Path(folder).iterdir())]


@flow.step
def hoard() -> int:
    return len(b"x" * (600 << 20))


@flow.step
def crowd() -> int:
    return len([subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(64)])


@flow.step
def hold() -> int:
    held: list[int] = []
    try:
        held.extend(iter(lambda: os.dup(0), None))
    finally:
        for fd in held:
            os.close(fd)
    return len(held)


@flow.step
def call() -> None:
    socket.create_connection(("192.0.2.1", 9), 10).close()


@flow.run
async def go(mail: Mail) -> list[str]:
    found = await use(mail.text.strip())
    for step in (hoard, crowd, hold, call):
        try:
            found.append(str(await step()))
        except StepError as failure:
            found.append(f"{failure.type}: {failure.reason}")
    return found
