"""Giving runs to a new child: RunResumed in the log of each, in one commit.

The count of exits that it repeats is read where it is written. A run that isn't driven any more is left out, and so is
one whose log can't be read: that is nobody else's fault.
"""

import logging

from substrate.errors import Damaged
from substrate.messages import Fact, Refused, ResumeRuns
from substrate.operations.append import extend
from substrate.operations.change import Change, Context, Decided, Extension, Settled, View, fence
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId

_log = logging.getLogger(__name__)


def resume_runs(view: View, operation: ResumeRuns, context: Context) -> Decided:
    """Resume them. Value: tuple of the runs that are this generation's now. Refused with code ``generation``."""
    refused = fence(view, operation.generation)
    if refused is not None:
        return refused
    puts: dict[str, bytes] = {}
    deletes: list[str] = []
    facts: list[Fact] = []
    known: dict[RunId, Known] = {}
    for run in dict.fromkeys(operation.runs):
        made = _resumed(view, run, operation, context)
        if made is None:
            continue
        puts.update(made.puts)
        deletes += made.deletes
        facts.append(made.fact)
        known[run] = made.known
    if not known:
        return Settled(())
    which = next(iter(known)) if len(known) == 1 else f"{len(known)} runs"
    return Change(
        author="supervisor",
        subject=f"append RunResumed to {which}",
        puts=puts,
        deletes=tuple(deletes),
        facts=tuple(facts),
        known=known,
        value=tuple(known),
    )


def _resumed(view: View, run: RunId, operation: ResumeRuns, context: Context) -> Extension | None:
    try:
        before = view.known(run)
        if not isinstance(before.run, fold.Driven) or before.run.ledger.generation >= operation.generation:
            return None
        event = ev.RunResumed(generation=operation.generation, attempt=before.run.ledger.attempts)
        made = extend(view, run, before, (event,), context)
    except Damaged as failure:
        _log.error("%s can't be resumed: %s", run, failure.message)
        return None
    return None if isinstance(made, Refused) else made
