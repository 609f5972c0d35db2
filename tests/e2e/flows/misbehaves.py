"""A step that does something dreadful the first time, and then is good; the mail's text says what.

The folder BOOKS is as for the claims.
"""

import os
import signal
import socket
import time
from pathlib import Path

from waypost import Mail, Workflow, idempotency_key, progress

flow = Workflow("misbehaves", address="misbehaves@example.com", runs="message", env=["BOOKS"])


def ways() -> tuple[int, int]:
    """The descriptors of control and events, which are beyond those that anybody would take for free."""
    control, events = sorted(fd for fd in (int(each.name) for each in Path("/proc/self/fd").iterdir()) if fd >= 200)
    return control, events


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
    control, events = ways()
    match what:
        case "rubbish":
            os.write(control, os.urandom(4096))
        case "a frame of 4 GiB":
            os.write(control, b"\xff\xff\xff\xff")
        case "an empty frame":
            os.write(control, b"\0\0\0\0")
        case "a frame that nobody signed":
            os.write(control, b"\0\0\0\x03\x82\x40\x40")
        case "rubbish for the watchers":
            os.write(events, b"\0\0\0\x03\x82\x40\x40")
        case "a channel that is shut down":
            socket.socket(fileno=os.dup(control)).shutdown(socket.SHUT_RDWR)
        case "half a channel that is shut down":
            socket.socket(fileno=os.dup(control)).shutdown(socket.SHUT_WR)
        case "the other half":
            socket.socket(fileno=os.dup(control)).shutdown(socket.SHUT_RD)
        case "half a frame":
            os.write(control, b"\0\x10\0\0\x82")
            return "the rest of it will never come"
        case "a channel that is closed":
            os.close(control)
            return "nobody can be told"
        case "another file in place of a channel":
            os.dup2(os.open(os.devnull, os.O_RDWR), control)
            return "nobody will be told"
        case "another file in place of the events":
            os.dup2(os.open(os.devnull, os.O_RDWR), events)
            progress("nobody will see it")
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
