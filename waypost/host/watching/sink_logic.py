"""Who is told of open approvals, and when: the decision of the SinkActor.

A sink is whatever shows approvals outside of Waypost: a connection to the API. It is told of each open approval once
that is durable, again from the beginning whenever it connects, and that one is withdrawn when it is answered or nobody
asks any more. Everything comes from the logs: what is open is read from the repositories in portions, as fast as the
sink takes it, and what happens meanwhile comes as events; of what was told only the names are kept, to withdraw it.

A deployment whose crew was made anew is read again; what was told and is no longer found is withdrawn.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, assert_never

from msgspec import UNSET

from actors.messages import Seen
from actors.watching import Asking, Sleeps
from substrate.messages import Approval, Approvals, Done, Outcome, ReadApprovals, Refused, Withheld
from waypost.acting import Next
from waypost.host.watching.sink_states import (
    Announced,
    Connect,
    Disconnect,
    End,
    HangUp,
    Hub,
    Inquire,
    Key,
    Line,
    Listed,
    Over,
    Peer,
    Ready,
    Say,
    Sink,
    SinkMessage,
    State,
    Unread,
    View,
    Withdrawn,
)
from waypost.model import events as ev
from waypost.model.ids import CallId, Deployment, RunId
from waypost.model.times import Now

PORTION = 64
"""Runs that a repository's writer looks at in one turn: some 5 ms."""


def advance(state: State, message: SinkMessage, _now: Now) -> Next[State]:
    """The next state, and what is said and asked."""
    if isinstance(state, Over):
        return Next(state, (End(message.sink),) if isinstance(message, Connect) else ())
    if isinstance(message, HangUp):
        return Next(Over(), tuple(map(End, state.peers)))
    return _hub(state, message)


def _hub(state: Hub, message: Connect | Ready | Disconnect | Asking | Sleeps | Seen | Outcome) -> Next[State]:
    work = _Work(state)
    match message:
        case Connect(sink):
            work.peers[sink] = Peer({name: View() for name in state.deployments})
        case Ready(sink):
            if sink in work.peers:
                work.peers[sink] = replace(work.peers[sink], room=True)
        case Disconnect(sink):
            work.peers.pop(sink, None)
        case Asking() | Sleeps():
            work.anew(message)
        case Seen():
            for sink in tuple(work.peers):
                work.seen(sink, message)
        case Outcome():
            work.page(message)
        case _:
            assert_never(message)
    work.read_on()
    return Next(
        Hub(work.deployments, work.peers, work.pages, work.counter),
        tuple(work.effects),
    )


class _Work:
    """One message being taken in; local to ``advance``."""

    def __init__(self, state: Hub) -> None:
        self.deployments, self.peers, self.pages = dict(state.deployments), dict(state.peers), dict(state.pages)
        self.counter = state.counter
        self.effects: list[Any] = []

    def anew(self, asking: Asking | Sleeps) -> None:
        """A deployment's events are told from here on: what was before is to be read."""
        name = asking.deployment
        self.deployments[name] = asking
        for sink, peer in self.peers.items():
            before = peer.views.get(name, View())
            awaited = None if self._awaits(peer, name) else peer.asked
            self.peers[sink] = replace(peer, views={**peer.views, name: View(before.told)}, asked=awaited)

    def seen(self, sink: Sink, seen: Seen) -> None:
        """A durable event, which may open or close an approval."""
        view = self.peers[sink].views.get(seen.deployment)
        if view is None:
            return
        event, run = seen.recorded.event, seen.run
        match event:
            case ev.SignalAwaited(park="approval"):
                self._open(sink, seen.deployment, _asked(run, event))
            case ev.RunCompleted() | ev.RunFailed() | ev.RunCancelled():
                view = replace(view, ended=view.ended | {run} if view.reading else frozenset())
                self._put(sink, seen.deployment, view)
                for key in sorted(key for key in view.told if key[0] == run):
                    self._close(sink, seen.deployment, key, "ended")
            case _:
                call, why = ev.call_of(event), why_over(event)
                if call is not None and why:
                    self._close(sink, seen.deployment, (run, call), why)

    def page(self, outcome: Outcome) -> None:
        """A portion of what is open has come; or it can't be read."""
        sink, name = self.pages.pop(outcome.correlation, (None, Deployment("")))
        peer = None if sink is None else self.peers.get(sink)
        if sink is None or peer is None or peer.asked != outcome.correlation:
            return
        self.peers[sink] = replace(peer, asked=None)
        match outcome.result:
            case Done(value=Approvals(found, following)):
                for approval in found:
                    self._open(sink, name, approval)
                if following is not None:
                    self._put(sink, name, replace(self._view(sink, name), after=following))
                else:
                    self._read(sink, name)
            case Refused("asleep"):
                self.deployments[name] = Sleeps(name, self.deployments[name].address)
            case Done() | Refused() | Withheld():
                self._put(sink, name, replace(self._view(sink, name), reading=False))
                why = outcome.result.why if isinstance(outcome.result, Refused) else str(outcome.result)
                self._say(sink, Unread(name, why))
            case _:
                assert_never(outcome.result)

    def read_on(self) -> None:
        """Ask for the next portion for each sink that can take one."""
        for sink, peer in self.peers.items():
            name = next((name for name, view in peer.views.items() if view.reading), None)
            if name is None or not peer.room or peer.asked is not None:
                continue
            self.counter += 1
            self.pages[self.counter] = (sink, name)
            self.peers[sink] = replace(peer, asked=self.counter)
            question = ReadApprovals(after=peer.views[name].after, limit=PORTION)
            asking = self.deployments[name]
            self.effects.append(
                Inquire(name, asking.supervisor if isinstance(asking, Asking) else None, self.counter, question)
            )

    # --- inside ------------------------------------------------------------------------------------------------------

    def _open(self, sink: Sink, name: Deployment, approval: Approval) -> None:
        view, key = self._view(sink, name), (approval.run, approval.call)
        if key in view.closed or approval.run in view.ended:
            return
        if key not in view.told:
            self._say(sink, Announced(name, self.deployments[name].address, approval))
        found = view.found | {key} if view.reading else view.found
        self._put(sink, name, replace(view, told=view.told | {key}, found=found))

    def _close(self, sink: Sink, name: Deployment, key: Key, why: str) -> None:
        view = self._view(sink, name)
        if key in view.told:
            self._say(sink, Withdrawn(name, *key, why))
        closed = view.closed | {key} if view.reading else view.closed
        self._put(sink, name, replace(view, told=view.told - {key}, closed=closed))

    def _read(self, sink: Sink, name: Deployment) -> None:
        """All of it was read: what was told before and is not among it has been closed out of our sight."""
        view = self._view(sink, name)
        for key in sorted(view.told - view.found):
            self._close(sink, name, key, "gone")
        self._put(sink, name, View(self._view(sink, name).told, reading=False))
        self._say(sink, Listed(name))

    def _awaits(self, peer: Peer, name: Deployment) -> bool:
        return peer.asked is not None and self.pages.get(peer.asked, (None, None))[1] == name

    def _view(self, sink: Sink, name: Deployment) -> View:
        return self.peers[sink].views.get(name, View())

    def _put(self, sink: Sink, name: Deployment, view: View) -> None:
        peer = self.peers[sink]
        self.peers[sink] = replace(peer, views={**peer.views, name: view})

    def _say(self, sink: Sink, line: Line) -> None:
        self.peers[sink] = replace(self.peers[sink], room=False)
        self.effects.append(Say(sink, line))


def _asked(run: RunId, event: ev.SignalAwaited) -> Approval:
    return Approval(
        run=run,
        call=event.call,
        at=event.at,
        title=event.title,
        who=event.who,
        request=event.request,
        deadline=None if event.timeout_at is UNSET else event.timeout_at,
        snapshot=None if event.snapshot is UNSET else bytes(event.snapshot),
    )


def how_closed(events: Iterable[ev.AnyEvent], call: CallId) -> str:
    """Why an approval of a run is open no more, as its log has it and ``Withdrawn`` says; empty where it is open."""
    why = ""
    for event in events:
        if isinstance(event, ev.TERMINAL):
            return why or "ended"
        if ev.call_of(event) == call:
            why = "" if isinstance(event, ev.SignalAwaited) else why or why_over(event)
    return why


def why_over(event: ev.AnyEvent) -> str:
    """Why the wait at an event's call is over; empty where it isn't."""
    match event:
        case ev.SignalReceived():
            return "answered"
        case ev.TimerFired() if event.timer == event.call:
            return "deadline"
        case ev.SignalAwaitAbandoned():
            return "abandoned"
        case _:
            return ""
