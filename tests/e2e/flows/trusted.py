"""Steps that use secrets as they should, and as people do when they look for a mistake; each mail names one."""

import logging
import os
import sys
from pathlib import Path

from waypost import Attachment, Mail, StepError, Workflow, approve, cancel, progress, secret, send, sources

flow = Workflow("trusted", address="trusted@example.com", env=["PLANTED_TOKEN"], runs="message")


@flow.step
def uses() -> list[int]:
    """Reads all three."""
    return [len(secret(handle).reveal()) for handle in ("by-file", "by-env", "by-command")]


@flow.step
def asks_models() -> list[str]:
    """Uses the sources."""
    return [f"{each.id} {len(each.secret().reveal())}" for each in sources()]


@flow.step
def careless() -> str:
    """Does what people do when they look for a mistake."""
    value = secret("by-file").reveal()
    logging.getLogger("flow").warning("logging in with %s, %r", value, secret("by-file"))
    print("token:", value, flush=True)  # noqa: T201 - what people do
    sys.stderr.write(f"{value}\n")
    progress(f"trying {value}")
    raise RuntimeError(f"401 for token {value}, {secret('by-env').reveal()}")


@flow.step
def gives_away() -> dict[str, str]:
    """Returns it."""
    return {"token": secret("by-env").reveal()}


@flow.step
def not_granted() -> str:
    """Asks for what another step may read."""
    return secret("by-file").reveal()


@flow.step
def environment() -> list[str]:
    """What it may see of the variables."""
    return sorted(name for name in os.environ if "PLANTED" in name)


@flow.step
def twice(gate: str) -> list[int]:
    """Reads it, waits until somebody has written into the gate, and reads it again."""
    before = len(secret("by-file").reveal())
    with Path(gate).open() as opened:
        opened.read()
    return [before, len(secret("by-file").reveal())]


stolen: list[str] = []


@flow.step
def hides() -> int:
    """Puts it where the run's own code finds it."""
    stolen.append(secret("by-file").reveal())
    return len(stolen)


@flow.run
async def run(mail: Mail) -> list[str]:
    """One step, named by the mail, with what else it says."""
    name, *arguments = mail.text.split()
    if name == "mails":
        await hides()
        await send(to=mail.sender, subject="s", text=f"the token is {stolen[0]}")
    if name == "asks":
        await hides()
        await approve("?", who=mail.sender, snapshot={"token": stolen[0]})
    if name == "addresses":
        await hides()
        await send(to=f"{stolen[0]}@example.com", subject="s", text="t")
    if name == "encloses":
        await hides()
        await send(to=mail.sender, subject="s", text="t", attachments=[Attachment(stolen[0], "text/plain", b"t")])
    if name == "quits":
        await hides()
        await cancel(f"the token {stolen[0]} is refused")
    if name in {"ends", "ends-large"}:
        await hides()
        return stolen + ["x" * 100_000] * (name == "ends-large")
    try:
        return [str(await globals()[name](*arguments))]
    except StepError as error:
        return [error.type, error.reason]
