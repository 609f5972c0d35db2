"""What a held deployment would do if it were let go on: read before anybody says so, changing nothing."""

from dataclasses import dataclass

from substrate import layout, runlog
from substrate.reader import Reader
from substrate.signing.epoch import Epoch, decode_epoch
from substrate.state import decode_state
from substrate.storage.readview import ReadView, open_readonly
from waypost.host.datadir.directory import DataDir
from waypost.host.keeping_errors import NoSuchDeployment, NotHeld
from waypost.host.reading.narrate import printable
from waypost.host.reading.offline import public_key
from waypost.model.queue import decode_outgoing
from waypost.model.times import plainly, stamp

SHOWN = 1000
"""Of each list."""
_AT_REST = {"completed", "failed", "cancelled", "queued"}
"""What has ended, or hasn't begun: ended runs are listed, too, until they are sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldGo:
    """``mails`` that would go out, ``runs`` that would go on, ``queued`` mails that would start or resume runs.

    ``why`` it is held, as ``state/deployment.json`` has it, and the ``epoch`` that began then, if one did. Lines for
    people; ``more`` tells that some were left out.
    """

    why: str
    epoch: Epoch | None
    mails: tuple[str, ...]
    runs: tuple[str, ...]
    queued: int
    more: bool


def would_go(data: DataDir, name: str) -> WouldGo:
    """Look at a held deployment. Raises NoSuchDeployment, NotHeld, SubstrateError."""
    if name not in data.deployments():
        raise NoSuchDeployment(name, data.deployments())
    view = open_readonly(data.repo(name), public_key(data))
    why = decode_state(view.read(layout.STATE) or b"").held
    if not why:
        raise NotHeld(name)
    raw = view.read(layout.EPOCH)
    reader = Reader(view)
    mails = tuple(_mails(view))
    live = [line for line in reader.runs(SHOWN + 1) if line.state not in _AT_REST]
    waiting = sum(line.place in {"inbox", "processing"} for line in reader.queue())
    return WouldGo(
        why=why,
        epoch=None if raw is None else decode_epoch(raw),
        mails=mails[:SHOWN],
        runs=tuple(
            f"{line.run} {line.state}"
            + "".join(
                f"; {wait.kind}: {printable(wait.detail, 60)}"
                + (f", until {plainly(stamp(wait.deadline))}" if wait.deadline is not None else "")
                for wait in line.waiting[:2]
            )
            for line in live[:SHOWN]
        ),
        queued=waiting,
        more=len(mails) > SHOWN or len(live) > SHOWN,
    )


def _mails(view: ReadView) -> list[str]:
    found: list[str] = []
    for directory, name in runlog.leaves(view, layout.OUTBOX):
        entry = decode_outgoing(view.read(f"{directory}/{name}") or b"")
        of = f"of {entry.run}, call {entry.call}" if entry.run else f"a notice about mail {entry.about}"
        found.append(f"to {printable(', '.join(entry.to), 120)}, {of}")
    return found
