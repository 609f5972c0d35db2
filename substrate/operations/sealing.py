"""Sealing a finished run: from ``runs/`` to ``sealed/``, its log in one file, byte for byte (storage §1).

The substrate's own doing, asked for by nobody. What a commit holds is bounded: a run with many large values moves those
first, some in each commit, and its log, its grants and what is left in the last one; ``events.jsonl`` is what says that
a run is sealed. So a death between two of them leaves a finished run that is sealed later.

``grants.json`` goes along. ``prev`` of seq 1 is the hash of repository id, run id and grants, and RunStarted names
their hash: without their bytes nobody could tell that a sealed chain begins where it says it does.
"""

from collections.abc import Iterable

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.messages import Refused
from substrate.operations.change import Change, View
from substrate.routing import Thread, key_of
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import RunId

STEP = 4 * 1024 * 1024
"""Bytes of values after which a commit takes no more of them; so it holds at most this and one value."""


def may_be_sealed(run: fold.Run) -> bool:
    """Whether nothing can follow: the run has ended, and the fate of all its mail is known."""
    return isinstance(run, fold.Ended) and not run.unsent


def seal_run(view: View, run: RunId, log: bytes | None = None) -> Change | Refused:
    """The next commit on a run's way to ``sealed/``; it is the last one when its value is True.

    ``log`` is the run's log, an event a line, where it was gathered before (``folding``).

    Refused with code ``not-ended``, ``unsent`` or ``sealed``. Raises Damaged where the run can't be read.
    """
    if runlog.is_sealed(view, run):
        return Refused("sealed", f"{run} is sealed already")
    known = view.known(run)
    if not isinstance(known.run, fold.Ended):
        return Refused("not-ended", f"{run} has not ended")
    if not may_be_sealed(known.run):
        return Refused("unsent", f"{run} has mail in the outbox")
    moved: dict[str, bytes] = {}
    gone: list[str] = []
    size = 0
    for name in runlog.blobs_of(view, run):
        if size >= STEP:
            return Change(
                author="supervisor", subject=f"seal {run}: values first", puts=moved, deletes=tuple(gone), value=False
            )
        path = layout.blob_path(run, name)
        moved[layout.sealed_blob_path(run, name)] = data = runlog.stored(view, path)
        gone.append(path)
        size += len(data)
    if log is None:
        log = b"".join(raw + b"\n" for raw in runlog.events(view, run))
    return Change(
        author="supervisor",
        subject=f"seal {run}",
        puts={
            **moved,
            layout.sealed_grants_path(run): runlog.stored(view, layout.grants_path(run)),
            layout.sealed_log_path(run): log,
        },
        deletes=(f"{layout.run_dir(run)}/",),
        sealed=run,
        value=True,
    )


def thread_of(run: RunId, raws: Iterable[bytes]) -> Thread:
    """What a run's log says of threads: the mails that belong to it, and which run it follows. Raises Damaged."""
    after: RunId | None = None
    keys: dict[str, None] = {}
    for raw in raws:
        # Most events name no mail and needn't be decoded.
        if not (b"RunStarted" in raw or b"SignalReceived" in raw or b"MailQueued" in raw):
            continue
        try:
            event = ev.decode(raw)
        except Invalid as bad:
            raise Damaged(f"{run}'s log", bad.message) from None
        if isinstance(event, ev.RunStarted):
            after = event.after or None
        key = key_of(event)
        if key is not None:
            keys[key] = None
    return Thread(run, after, tuple(keys))
