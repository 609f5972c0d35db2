"""What the end of a run means to its parent and to its children: in the very commit of that end.

``settled`` is asked of every decision, and adds what follows from it. A child run that has ended, in whatever way, is
told to its parent, by ChildCompleted with what it came to. The children of a run that has ended, and one that its
parent's code no longer awaits, are told to end: a run that goes on by CancelRequested, one whose mail is only queued by
a run that begins and ends here; a mail on hold is rejected.

Promise: no commit shows the end of a run without these, so no host has to remember them, and no crash can part them.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, assert_never

import msgspec
from msgspec import UNSET

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.messages import Appended, Consumed, Fact, Refused, Start
from substrate.operations.append import extended, numbered
from substrate.operations.buckets import filed_together, files_after
from substrate.operations.cancelling import not_run
from substrate.operations.change import Change, Context, Item, View
from substrate.operations.take_up import begins_with, consumed, queued_path
from substrate.runlog import Known
from substrate.state import State
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.child_mail import Spawner, child_id, spawner
from waypost.model.code import decode as decode_code
from waypost.model.errors import Invalid
from waypost.model.ids import CallId, RunId, message_key
from waypost.model.queue import Entry, decode

_log = logging.getLogger(__name__)
_MESSAGE = 65_536
"""Characters of a child's error that its parent is told: the whole of it is in the child's log."""


def settled(view: View, change: Change, context: Context) -> Change:
    """The change with all that follows from it. Raises Damaged where what follows rests on what can't be read."""
    return _Family(view, change, context).settled() if any(map(_concerns, change.facts)) else change


def _concerns(fact: Fact) -> bool:
    if type(fact) is Consumed:
        return fact.run is None
    if type(fact) is not Appended:
        return False
    state = fact.state
    if type(state) is fold.Ended:
        return bool(state.started.parent or state.children)
    ledger = fold.ledger(state)
    return (
        ledger is not None
        and bool(ledger.children)
        and any(type(each.event) is ev.ChildCancelRequested for each in fact.events)
    )


_Terminal: TypeAlias = ev.RunCompleted | ev.RunFailed | ev.RunCancelled


class _Consumed(NamedTuple):
    """A mail that is consumed here: its entry, where that lies, and the run that it begins, if it begins one."""

    entry: Entry
    path: str
    run: RunId | None


class _Family:
    """A change, as it grows: the runs after it, and what is written beside their logs."""

    def __init__(self, view: View, change: Change, context: Context) -> None:
        self._view, self._change, self._context = view, change, context
        self._told = deque(fact for fact in change.facts if isinstance(fact, Appended) and _concerns(fact))
        self._events = {fact.run: fact.events for fact in change.facts if isinstance(fact, Appended)}
        self._known = dict(change.known)
        self._base: dict[RunId, Known] = {}
        """Of the runs that are written to here, as they were before the change."""
        self._puts: dict[str, bytes] = {}
        self._consumed: dict[int, _Consumed] = {}

    def settled(self) -> Change:
        for fact in self._change.facts:
            if isinstance(fact, Consumed) and fact.run is None:
                self._rejected(fact.arrival)
        while self._told:
            self._changed(self._told.popleft())
        if not self._base and not self._consumed:
            return self._change
        return self._whole()

    def _changed(self, fact: Appended) -> None:
        run, state = fact.run, fact.state
        if isinstance(state, fold.Ended):
            ending = next((each.event for each in fact.events if isinstance(each.event, ev.TERMINAL)), None)
            if ending is not None:  # else it is the fate of its last mail
                self._ended(fact, state, ending)
            return
        ledger = fold.ledger(self._view.known(run).run)
        for each in fact.events:
            event = each.event
            if isinstance(event, ev.ChildCancelRequested) and ledger is not None and event.call in ledger.children:
                let_go = ledger.children[event.call].child
                self._end(Spawner(run, event.call), let_go, f"its parent {run} no longer awaits it")

    def _ended(self, fact: Appended, state: fold.Ended, ending: _Terminal) -> None:
        for call, child in state.children.items():
            self._end(Spawner(fact.run, call), child.child, f"its parent {fact.run} has ended ({state.outcome})")
        parent = state.started.parent
        if parent:
            by = Spawner(parent.run, parent.call)
            self._tell(by, fact.run, lambda: self._outcome(by, fact, ending))

    # --- to the parent -----------------------------------------------------------------------------------------------

    def _tell(self, by: Spawner, child: RunId, outcome: Callable[[], ev.ChildCompleted]) -> None:
        """Tell a run that goes on and has this child open. One that can't be read is told nothing."""
        try:
            ledger = fold.ledger(self._now(by.run).run)
        except Damaged as failure:
            _log.error("%s, a child of %s, has ended: %s", child, by.run, failure.message)
            return
        known = None if ledger is None else ledger.children.get(by.call)
        if known is not None and known.child == child:
            self._add(by.run, (outcome(),))

    def _outcome(self, parent: Spawner, fact: Appended, ending: _Terminal) -> ev.ChildCompleted:
        match ending:
            case ev.RunCompleted():
                result = self._handed_on(fact.run, parent.run, ending.result)
                return ev.ChildCompleted(call=parent.call, outcome="completed", result=result)
            case ev.RunFailed():
                error = ev.Fault(type=ending.error.type, message=ending.error.message[:_MESSAGE])
                return ev.ChildCompleted(call=parent.call, outcome="failed", error=error)
            case ev.RunCancelled():
                return _cancelled(parent.call, self._why(fact))
            case _:
                assert_never(ending)

    def _why(self, fact: Appended) -> str:
        ledger = fold.ledger(self._view.known(fact.run).run)
        if ledger is not None and ledger.cancel is not None:
            return ledger.cancel.reason
        return next((each.event.reason for each in fact.events if isinstance(each.event, ev.CancelRequested)), "")

    def _handed_on(self, child: RunId, parent: RunId, value: ev.Value) -> ev.Value:
        """The result as the parent has it: a large one lies in its own files."""
        if value.blob is not UNSET:
            sha256, path = value.blob, layout.blob_path(child, value.blob)
            data = self._change.puts.get(path) or runlog.stored(self._view, path)
        elif value.inline is not UNSET and len(bytes(value.inline)) > self._context.limits.inline:
            data = bytes(value.inline)
            sha256 = message_key(data)
        else:
            return value
        self._puts[layout.blob_path(parent, sha256)] = data
        return ev.Value(blob=sha256)

    def _rejected(self, arrival: int) -> None:
        """A child's mail was rejected: it won't start."""
        entry = self._entry(arrival)
        by = None if entry is None else spawner(entry.id)
        if entry is None or by is None:
            return
        ending = f"/{entry.key}.json"
        marked = (raw for path, raw in self._change.puts.items() if path.endswith(ending))
        why = next(filter(None, (decode(raw).rejected for raw in marked)), "")
        error = ev.Fault(type="ChildRejected", message=f"its mail {arrival} was rejected: {why}")
        self._tell(by, entry.run, lambda: ev.ChildCompleted(call=by.call, outcome="failed", error=error))

    def _entry(self, arrival: int) -> Entry | None:
        item = self._view.queue.get(arrival)
        return self._view.on_hold.get(arrival) if item is None else item.queued.entry

    # --- to the children ---------------------------------------------------------------------------------------------

    def _end(self, by: Spawner, child: RunId, reason: str) -> None:
        try:
            known = self._now(child)
        except Damaged as failure:
            _log.error("%s, a child of %s, isn't told to end: %s", child, by.run, failure.message)
            return
        asked = ev.CancelRequested(origin="parent", reason=reason)
        match known.run:
            case fold.Absent():
                self._unbegun(by, child, asked)
            case fold.Ended():
                pass
            case fold.Driven(ledger) | fold.Parked(ledger) | fold.Paused(ledger) if ledger.cancel is not None:
                pass
            case fold.Paused():
                self._add(child, (asked, not_run(known.run.code)))
            case _:
                self._add(child, (asked,))

    def _unbegun(self, by: Spawner, child: RunId, asked: ev.CancelRequested) -> None:
        """Nobody is to take its mail up any more."""
        arrival = self._view.arrival_of(message_key(child_id(*by).encode()))
        if arrival is None:
            return  # it is lost, as `fsck` says; its parent ends all the same
        item = self._view.queue.get(arrival)
        if item is not None:
            self._stillborn(item, by.run, asked)
            return
        held = self._view.on_hold[arrival]
        path = layout.hold_path(self._context.address, arrival, held.key)
        self._consumed[arrival] = _Consumed(msgspec.structs.replace(held, rejected="cancelled"), path, None)
        self._tell(by, child, lambda: _cancelled(by.call, asked.reason))

    def _stillborn(self, item: Item, parent: RunId, asked: ev.CancelRequested) -> None:
        """It begins and ends here, as any run that is cancelled while its mail is queued."""
        entry = item.queued.entry
        ledger = fold.ledger(self._view.known(parent).run)
        assert ledger is not None, "a child's mail is queued as long as its parent goes on"
        begins = begins_with(self._view, entry, _start(self._view, ledger.started), self._context)
        assert not isinstance(begins, Refused), begins
        event, grants = begins
        self._base[entry.run] = Known(fold.Absent(), prev=ev.genesis(self._context.repository, entry.run, grants))
        self._known[entry.run] = self._base[entry.run]
        self._consumed[entry.arrival] = _Consumed(entry, queued_path(item, self._context), entry.run)
        self._puts[layout.grants_path(entry.run)] = grants
        ended = ev.RunCancelled(code="not-run", detail="it had not begun: its mail was queued")
        self._add(entry.run, (event, asked, ended))

    # --- the change --------------------------------------------------------------------------------------------------

    def _now(self, run: RunId) -> Known:
        found = self._known.get(run)
        return self._view.known(run) if found is None else found

    def _add(self, run: RunId, events: tuple[ev.AnyEvent, ...]) -> None:
        if run not in self._base:
            self._base[run] = self._view.known(run)
        made = numbered(run, self._now(run), events, self._context)
        assert not isinstance(made, Refused), made
        after, recorded = made
        assert not isinstance(after.run, fold.Absent)
        self._known[run] = after
        self._events[run] = (*self._events.get(run, ()), *recorded)
        fact = Appended(run, recorded, after.run)
        if _concerns(fact):
            self._told.append(fact)

    def _whole(self) -> Change:
        """All of it as one commit. A log that the change has written to already is filed anew, with what was added."""
        change = self._change
        had = {fact.run for fact in change.facts if isinstance(fact, Appended)}
        anew = had.intersection(self._base)
        logs = tuple(f"{place}/" for run in anew for place in (layout.events_dir(run), layout.segments_dir(run)))
        puts = {path: data for path, data in change.puts.items() if not path.startswith(logs)}
        deletes = [path for path in change.deletes if not path.startswith(logs)]
        facts: dict[RunId, Appended] = {}
        for run, base in self._base.items():
            made = extended(self._view, run, base, (self._known[run], self._events[run]))
            puts |= made.puts
            deletes += made.deletes
            self._known[run], facts[run] = made.known, made.fact
        kept = tuple(
            facts[fact.run] if isinstance(fact, Appended) and fact.run in facts else fact for fact in change.facts
        )
        more = tuple(fact for run, fact in facts.items() if run not in had)
        gone = tuple(Consumed(arrival, each.run) for arrival, each in self._consumed.items())
        filed, state = self._filed()
        return msgspec.structs.replace(
            change,
            puts={**puts, **self._puts, **filed},
            deletes=(*deletes, *(each.path for each in self._consumed.values())),
            facts=(*gone, *kept, *more),
            state=state,
            known=self._known,
            extension=None,
        )

    def _filed(self) -> tuple[dict[str, bytes], State | None]:
        """The entries of what is consumed here, and the counts after it."""
        state, found = self._change.state, list(self._consumed.values())
        if not found:
            return {}, state
        keys = [each.entry.key for each in found]
        state = filed_together(self._view, state or self._view.state, keys, self._context)
        rejected = sum(each.run is None for each in found)
        state = msgspec.structs.replace(state, rejected=state.rejected + rejected)
        puts = files_after(self._view, state, self._context)
        for each in found:
            puts |= consumed(each.entry, state.bucket, self._context)
        return puts, state


def _cancelled(call: CallId, why: str) -> ev.ChildCompleted:
    error = ev.Fault(type="RunCancelled", message=why[:_MESSAGE])
    return ev.ChildCompleted(call=call, outcome="cancelled", error=error)


def _start(view: View, parent: ev.RunStarted) -> Start:
    """What a run records that begins and ends here: the code that is deployed, or that its parent began on."""
    code, definition, raw = parent.code, parent.definition, view.read(layout.DEPLOYED)
    if raw is not None:
        try:
            deployed = decode_code(raw)
        except Invalid as bad:
            raise Damaged(layout.DEPLOYED, bad.message) from None
        code, definition = deployed.tree, deployed.definition
    return Start(
        definition=definition,
        code=code,
        python=parent.python,
        waypost=parent.waypost,
        distributions=parent.distributions or "",
        mail_to=(),
    )
