"""Who may write what (storage §4): one table, as data.

For every kind of event: which principals may write it, and through which operation. Legality in the run's state, the
generation's fence and the sizes are checked beside it; nothing here looks at a run.
"""

import functools
from dataclasses import dataclass
from typing import Literal, assert_never

from msgspec import UNSET

from substrate.messages import Hub, Principal, Supervisor, WorkflowProcess
from waypost.model import events as ev

Name = Literal["supervisor", "workflow-process", "hub"]
Door = Literal[
    "import",
    "append",
    "take-up",
    "answer",
    "queue-mail",
    "spawn",
    "delivery",
    "pause",
    "cancel",
    "signal",
    "interrupt",
    "resume",
    "end",
]

HOST: frozenset[Name] = frozenset({"supervisor", "hub"})
CHILD: frozenset[Name] = frozenset({"workflow-process", "hub"})
EITHER: frozenset[Name] = HOST | CHILD
ADMINISTRATOR: frozenset[Name] = frozenset({"hub"})


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may write a kind of event, and the operations that it comes from."""

    who: frozenset[Name]
    doors: frozenset[Door]


def _rule(who: frozenset[Name], *doors: Door) -> Rule:
    return Rule(who, frozenset(doors))


TABLE: dict[type[ev.Event], Rule] = {
    ev.RunStarted: _rule(HOST, "take-up", "cancel"),
    ev.Foreign: _rule(ADMINISTRATOR, "import"),
    ev.RunResumed: _rule(HOST, "append", "resume"),
    ev.RunInterrupted: _rule(HOST, "interrupt"),
    ev.RunPaused: _rule(HOST, "pause", "interrupt"),
    ev.RunUnpaused: _rule(HOST, "pause"),
    ev.CancelRequested: _rule(HOST, "cancel"),
    ev.RunCancelled: _rule(EITHER, "append", "cancel", "pause", "interrupt"),
    ev.RunCompleted: _rule(CHILD, "append"),
    ev.RunFailed: _rule(EITHER, "append", "take-up"),
    ev.StepStarted: _rule(CHILD, "append"),
    ev.StepCompleted: _rule(CHILD, "append"),
    ev.StepFailed: _rule(EITHER, "append", "interrupt"),
    ev.AttemptScheduled: _rule(CHILD, "append"),
    ev.CancelPropagated: _rule(CHILD, "append"),
    ev.TimerSet: _rule(CHILD, "append"),
    ev.TimerFired: _rule(HOST, "append"),
    ev.TimerCancelled: _rule(CHILD, "append"),
    ev.SignalAwaited: _rule(CHILD, "append"),
    ev.SignalReceived: _rule(HOST, "take-up", "answer", "signal"),
    ev.SignalAwaitAbandoned: _rule(CHILD, "append"),
    ev.MailQueued: _rule(HOST, "queue-mail"),
    ev.MailSent: _rule(HOST, "delivery"),
    ev.MailFailed: _rule(HOST, "queue-mail", "delivery"),
    ev.ChildSpawned: _rule(HOST, "spawn"),
    ev.ChildRefused: _rule(HOST, "spawn"),
    ev.ChildCompleted: _rule(HOST, "end"),
    ev.ChildCancelRequested: _rule(CHILD, "append"),
    ev.CodeRested: _rule(CHILD, "append"),
}

_LOOKED_INTO = (ev.StepFailed, ev.CancelRequested, ev.RunCancelled)
"""Kinds of which not everybody in the table may write everything."""


def name_of(principal: Principal) -> Name:
    """The principal as a commit's author has it."""
    match principal:
        case Supervisor():
            return "supervisor"
        case WorkflowProcess():
            return "workflow-process"
        case Hub():
            return "hub"
        case _:
            assert_never(principal)


def forbids(principal: Principal, event: ev.AnyEvent, door: Door) -> str:
    """Why this principal may not write this event through this door; empty when it may."""
    who = name_of(principal)
    if type(event) in _free(who, door):
        return ""
    rule = TABLE[type(event)]
    why = "" if who in rule.who and not isinstance(event, _LOOKED_INTO) else may_not_write(who, event)
    if not why and door == "append" and who == "supervisor" and isinstance(event, ev.StepFailed):
        return "supervisor writes StepFailed by interrupt only, with the count of the exit"
    if not why and door not in rule.doors:
        return f"{ev.kind(event)} is written by {' or '.join(sorted(rule.doors))}, not by {door}"
    return why


@functools.cache
def _free(who: Name, door: Door) -> frozenset[type[ev.Event]]:
    """The kinds of which this principal may write everything through this door."""
    free = {kind for kind, rule in TABLE.items() if who in rule.who and door in rule.doors}
    return frozenset(free.difference(_LOOKED_INTO))


def follows(event: ev.AnyEvent) -> bool:
    """Whether an event may follow, in the same commit, from what a child writes to another run: its parent, its child.

    That it does follow is a rule of its own (``rules.children``).
    """
    match event:
        case ev.ChildCompleted() | ev.CancelRequested(origin="parent") | ev.RunCancelled(code="not-run"):
            return True
        case ev.RunStarted():
            return event.parent is not UNSET
        case _:
            return False


def may_not_write(who: str, event: ev.AnyEvent) -> str:
    """Why the principal of this name may not write this event through any door; empty when it may."""
    if who not in TABLE[type(event)].who:
        return f"{who} may not write {ev.kind(event)}"
    if who == "supervisor" and isinstance(event, ev.CancelRequested) and event.origin == "hub-admin":
        return "supervisor may not speak for an administrator"
    if isinstance(event, ev.RunCancelled) and who != "hub" and (event.code == "ended") != (who == "workflow-process"):
        # That its code has ended is the child's to say, that it hasn't is the host's.
        return f"{who} may not write RunCancelled with code {event.code}"
    if isinstance(event, ev.StepFailed):
        # What a crash did to a step is the host's to say, what the step raised is the child's.
        if who == "supervisor" and event.code != "child-crashed":
            return "supervisor may write StepFailed only with code child-crashed"
        if who == "workflow-process" and event.code != "raised":
            return "workflow-process may write StepFailed only with code raised"
    return ""
