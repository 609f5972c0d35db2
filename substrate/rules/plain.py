"""The way of nearly all that is ever written: events in files of their own, and nothing beside them.

No rule of its own: whatever isn't plainly in order is left to the full rules, which say what is wrong with it. A
property test holds the two against each other. Here because it is paid for with every append.
"""

from msgspec import UNSET

from substrate import layout, principals
from substrate.messages import Recorded
from substrate.rules.commit import Before, Commit, Ground, tail_of
from substrate.rules.logs import CHILD
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId

_FILE = 16
"""Characters of ``/0000000001.json``."""
_ALONE = frozenset(
    {ev.StepStarted, ev.StepCompleted, ev.AttemptScheduled, ev.TimerSet, ev.TimerFired, ev.TimerCancelled}
    | {ev.SignalAwaited, ev.SignalAwaitAbandoned, ev.RunPaused, ev.RunUnpaused, ev.RunFailed, ev.CodeRested}
)
"""Kinds that name nothing beside the log (but a value, which is looked for), and that the table tells the author of."""


def plain_append(before: Before, commit: Commit, ground: Ground) -> tuple[RunId, Known] | None:
    """The run after a commit that only adds events to its tail and breaks no rule; None for others. Raises Damaged."""
    recorded, puts, author = commit.recorded, commit.puts, commit.author
    directory = "" if commit.deletes or len(recorded) != len(puts) else next(iter(puts), "")[:-_FILE]
    run = tail_of(directory)
    if run is None:
        return None
    known = before.known(run)
    if author == CHILD and not _given(before, known.run):
        return None
    limit, seq = ground.limits.event, known.seq
    for each, (path, raw) in zip(recorded, puts.items(), strict=True):
        event = each.event
        kind = type(event)
        seq += 1
        if (
            each.raw is not raw
            or path != f"{directory}/{seq:010d}.json"
            or kind not in _ALONE
            or author not in principals.TABLE[kind].who
            or (type(event) is ev.StepCompleted and event.output.blob)
            or (kind is ev.RunFailed and _kin(known.run))
            or (type(event) is ev.RunPaused and event.code == "poison")
            or len(raw) > limit
        ):
            return None
    made = commit.extension
    if made is not None and made.before is known and made.fact.events is recorded:
        after: Known | None = made.known
    else:
        after = _followed(run, known, recorded)
    if after is None or seq - known.folded > layout.FAN or (author == CHILD and _over(after.run, ground)):
        return None
    return run, after


def _followed(run: RunId, known: Known, recorded: tuple[Recorded, ...]) -> Known | None:
    """The run after these events; None where one of them may not follow: its number and its kind are for the fold."""
    state, seq, prev, at = known.run, known.seq, known.prev, known.changed
    for each in recorded:
        event = each.event
        seq += 1
        if event.prev != prev:
            return None
        try:
            state = fold.evolve(state, event, run_id=run)
        except fold.Illegal:
            return None
        prev, at = ev.digest(each.raw), event.at
    return Known(state, seq, prev, known.folded, at)


def _given(before: Before, state: fold.Run) -> bool:
    ledger = fold.ledger(state)
    return ledger is not None and ledger.generation == before.state.generation


def _kin(state: fold.Run) -> bool:
    """Whether somebody else must be told of the run's end."""
    ledger = fold.ledger(state)
    return ledger is not None and (ledger.started.parent is not UNSET or bool(ledger.children))


def _over(state: fold.Run, ground: Ground) -> bool:
    limits, ledger = ground.limits, fold.ledger(state)
    if ledger is None:
        return False
    return len(ledger.timers) > limits.timers or ledger.open_calls > limits.open_calls
