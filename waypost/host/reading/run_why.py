"""Why a run isn't further: what it waits on, each in a sentence, and with the command that would let it go on. Pure.

First comes what stops its whole deployment, then what stops the run, then what its code waits for, oldest first. A run
that has ended waits on nothing, and its sentence says how it ended.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, assert_never

from waypost.host.answers.records import RunShown, WaitingOn
from waypost.host.answers.why import Why
from waypost.host.processes.sight import shut_off
from waypost.host.reading.deployment_why import blocks, fields, halted, sentence_of, threadless, told
from waypost.host.reading.explain import CANCEL, PAUSE, Situation, Told, state_name
from waypost.host.reading.narrate import printable
from waypost.model.attempts import is_suspect
from waypost.model.ids import RunId
from waypost.model.run import Absent, Driven, Ended, Ledger, ledger, parent_of
from waypost.model.times import stamp, unstamp
from waypost.model.waiting import Waiting, waiting_on
from waypost.model.why import Sentence, command, operands

_REASON = 80
_TITLE = 200
_MANNED = frozenset({"running", "draining"})
"""States of a deployment in which a process of it is at work."""


def why(
    run: Told,
    situation: Situation,
    *,
    ahead: int = 0,
    queued: str = "",
    children: Mapping[str, str] = MappingProxyType({}),
) -> Why:
    """The answer of ``waypost why RUN``.

    ``ahead``: how many other runs are driven, of which a suspect waits for. ``queued``: since when a run's first mail
    lies here that hasn't begun (ISO 8601). ``children``: in what state its child runs are, as far as that is known.
    """
    waiting = waits(run, situation, ahead=ahead, queued=queued, children=children)
    if isinstance(run.state, Ended):
        first = fields(_ended(run, run.state, situation.isolation))
    else:
        first = {name: getattr(waiting[0], name) for name in _FIELDS}
    parent = parent_of(run.state)
    return Why(
        run=run.run,
        deployment=situation.name,
        state=state_name(run.state),
        parent=parent.run if parent else "",
        child=printable(parent.workflow, _TITLE) if parent else "",
        waiting=waiting,
        on=told(situation),
        **first,
    )


def shown(run: Told, situation: Situation) -> RunShown:
    """The answer of ``waypost show``: the same with and without a host."""
    parent = parent_of(run.state)
    alone = situation if situation.hosted or situation.state else replace(situation, hosted=True, state="running")
    return RunShown(
        run=run.run,
        deployment=situation.name,
        state=state_name(run.state),
        started=run.lines[0].at if run.lines else "",
        sender=run.started.mail.sender if run.started else "",
        parent=parent.run if parent else "",
        child=printable(parent.workflow, _TITLE) if parent else "",
        seq=run.lines[-1].seq if run.lines else 0,
        lines=run.lines,
        waiting=waits(run, alone),
        traceback=run.traceback,
    )


def waits_its_turn(run: Told, situation: Situation) -> bool:
    """Whether the run is to be resumed alone: its newest exit made it a suspect, and no child was given it since."""
    if not isinstance(run.state, Driven) or not run.exits or not is_suspect(run.state.ledger, situation.limits):
        return False
    return run.exits[-1].generation == run.state.ledger.generation


def waits(
    run: Told,
    situation: Situation,
    *,
    ahead: int = 0,
    queued: str = "",
    children: Mapping[str, str] = MappingProxyType({}),
) -> tuple[WaitingOn, ...]:
    """What the run waits on; the first is what it waits on before all else. Empty for one that has ended."""
    return tuple(_waits(run, situation, ahead, queued, children))


def _waits(
    run: Told, situation: Situation, ahead: int, queued: str, children: Mapping[str, str]
) -> Iterator[WaitingOn]:
    if isinstance(run.state, Ended):
        return
    on, shown_as = sentence_of(situation), situation.code or situation.state
    # Where its process is there and has the run, it may go on all the same.
    hindered = situation.state != "running" or (not _given(run, situation) and (situation.code or on.needed))
    if shown_as:
        on = replace(on, waits_for=f"its deployment, which is {shown_as} and waits for {on.waits_for}")
    if still := halted(situation):
        yield _on("operator", f"its process {still}", on)
    elif blocks(situation):
        yield _on("operator", f"its deployment is {shown_as or 'run by nobody'}", on)
    elif hindered and isinstance(run.state, Absent | Driven):
        yield _on("deployment", f"its deployment is {shown_as}", on)
    if waits_its_turn(run, situation):
        yield _turn(run, ahead)
    for each in waiting_on(run.state):
        detail = printable(each.detail) + (_exits(run) if each.kind == "poison" else "")
        if each.kind == "child-run" and (state := children.get(_child(run, each))):
            detail += f", which is {state}"
        since = run.opened.get(_opened(each), run.changed or queued)
        yield _on(each.kind, detail, _sentence(each, detail, run, situation, since), call=each.call)


def _given(run: Told, situation: Situation) -> bool:
    """Whether the process that is there was given the run, as far as that is known."""
    known = _ledger(run)
    return known is not None and known.generation >= situation.generation


def _on(kind: str, detail: str, sentence: Sentence, *, call: str | None = None) -> WaitingOn:
    return WaitingOn(kind=kind, detail=detail, call=call, **fields(sentence))


def _opened(wait: Waiting) -> str:
    if wait.kind in {"code", "poison", "operator"}:
        return PAUSE
    return CANCEL if wait.kind == "cancel" else wait.call or ""


def _turn(run: Told, ahead: int) -> WaitingOn:
    """A suspect waits to be resumed alone."""
    others = f"; up to {ahead} {'other goes' if ahead == 1 else 'others go'} first" if ahead else ""
    what = f"it is resumed alone, after {len(run.exits)} unexpected exits{_exits(run)}{others}"
    sentence = Sentence(
        waits_for=f"its turn ({what})",
        since=run.exits[-1].at,
        then="it goes on; if its process ends once more over it, it is set aside",
    )
    return _on("turn", what, sentence)


def _exits(run: Told) -> str:
    """How the children ended that drove it, since its last progress."""
    return f" ({'; '.join(printable(each.reason, _REASON) for each in run.exits)})" if run.exits else ""


def _sentence(wait: Waiting, detail: str, run: Told, situation: Situation, since: str) -> Sentence:
    until = "" if wait.deadline is None else stamp(wait.deadline)
    match wait.kind:
        case "approval" | "signal" | "mail":
            return replace(_from_outside(wait, detail, run, situation), since=since, until=until)
        case "code" | "poison" | "operator":
            return replace(_from_somebody(wait.kind, detail, run, situation), since=since)
        case "child-run":
            return replace(_child_run(wait, detail, run), since=since)
        case "child" if situation.crowd is not None:
            return replace(threadless(situation.crowd), since=since)
        case "dispatch" | "child" | "step" | "timer" | "retry" | "cancel":
            what, then = _by_itself(wait.kind, wait, detail, run, situation)
            if wait.kind == "cancel" and _told_at_once(since, situation):
                until = stamp(unstamp(since) + round(situation.limits.cancel_grace * 1000))
            stuck = ""
            if (
                wait.kind == "child"
                and situation.hosted
                and situation.state == "running"
                and not waits_its_turn(run, situation)
                and _given(run, situation)
            ):
                # The code of all runs takes turns, and no turn is long: one that stays there tells of its process.
                then += "; where neither comes within a minute, its process is stuck, and a fresh one helps"
                stuck = command("recycle", situation.name, "--reason", "stuck")
            return Sentence(waits_for=what, since=since, until=until, then=then, command=stuck)
        case _:
            assert_never(wait.kind)


def _by_itself(
    kind: Literal["dispatch", "child", "step", "timer", "retry", "cancel"],
    wait: Waiting,
    detail: str,
    run: Told,
    situation: Situation,
) -> tuple[str, str]:
    """What it waits for, and what follows, where the host alone lets it go on."""
    match kind:
        case "dispatch":
            return "its turn, as its mail is on disk and is taken up next", "the run begins"
        case "child":
            return "its code, between two steps", "its next step begins, or it ends"
        case "step":
            manned = situation.hosted and situation.state in _MANNED and _given(run, situation)
            return _stepping(wait, run, at_work=manned, still=halted(situation))
        case "timer":
            return "its timer", "the run goes on"
        case "retry":
            return f"the end of a pause ({detail})", f"it is tried again{shut_off(detail, situation.isolation)}"
        case "cancel":
            grace = f"{situation.limits.cancel_grace:g} s after its code was told so, the host ends it"
            return f"its code to clean up ({detail})", f"the run ends as cancelled; {grace}"
        case _:
            assert_never(kind)


def _told_at_once(since: str, situation: Situation) -> bool:
    """Whether its process was there when the cancel was asked for; else its time runs from when one is told so."""
    return situation.hosted and situation.state == "running" and "" < situation.since <= since


def _from_outside(wait: Waiting, detail: str, run: Told, situation: Situation) -> Sentence:
    late = "" if wait.deadline is None else "; at the deadline its code is told that nothing came"
    match wait.kind:
        case "approval":
            line, other = _verdict(wait, run)
            then = f"the run goes on with it{late}"
            return Sentence(waits_for=_asked(wait, run, detail), then=then, command=line, alternative=other)
        case "signal":
            line = command("signal", *operands(run.run, wait.detail), stdin="payload.json")
            then = f"the run goes on with its payload, a JSON value{late}"
            return Sentence(waits_for=f'the signal "{detail}"', then=then, command=line)
        case _:
            line = command("send", *operands(situation.address), stdin="reply.eml")
            then = f"the run goes on with it; a reply to a mail of the run is one{late}"
            return Sentence(waits_for=detail, then=then, command=line)


def _child_run(wait: Waiting, detail: str, run: Told) -> Sentence:
    """What the child waits on is said of the child."""
    child = _child(run, wait)
    return Sentence(
        waits_for=f"its child run ({detail}) to end",
        then="the run goes on with what it came to",
        command=command("why", child) if child else "",
        alternative=command("cancel", child, "--reason", "REASON") if child else "",
    )


def _child(run: Told, wait: Waiting) -> str:
    known = _ledger(run)
    child = None if known is None or wait.call is None else known.children.get(wait.call)
    return "" if child is None else child.child


def _from_somebody(
    kind: Literal["code", "poison", "operator"], detail: str, run: Told, situation: Situation
) -> Sentence:
    resume = command("resume", run.run)
    if kind == "code":
        return Sentence(
            waits_for=f"code that goes on where it was ({detail})",
            then=f"`{resume}` lets it",
            command=command("deploy", situation.file or "FILE"),
            alternative=resume,
            needed=True,
        )
    return Sentence(
        waits_for=f"somebody to let it go on ({detail})",
        then="the run goes on where it was",
        command=resume,
        alternative=command("cancel", run.run, "--reason", kind) if kind == "poison" else "",
        needed=True,
    )


def _stepping(wait: Waiting, run: Told, *, at_work: bool, still: str) -> tuple[str, str]:
    known = _ledger(run)
    step = None if known is None or wait.call is None else known.steps.get(wait.call)
    name = "a step" if step is None else f"step {printable(step.step, _TITLE)}"
    tried = f", attempt {step.attempt}" if step is not None and step.attempt > 1 else ""
    unless = "unless the cancel ends it, " if known is not None and known.cancel is not None else ""
    if not at_work:
        return f"{name}{tried}, which had begun", f"{unless}it is run again, and the run goes on with its result"
    if still:
        return f"{name}{tried}, whose process {still}", "it goes on with its process"
    then = f"{unless}the run goes on with its result; if the process ends before that, the step is run again"
    return f"{name}{tried}, which is at work", then


def _verdict(wait: Waiting, run: Told) -> tuple[str, str]:
    """The two answers; where several are open, each names the one that it is for."""
    known = _ledger(run)
    several = known is not None and sum(each.park == "approval" for each in known.waits.values()) > 1
    call = ("--call", wait.call) if several and wait.call is not None else ()
    return command("approve", run.run, *call), command("reject", run.run, *call)


def _asked(wait: Waiting, run: Told, detail: str) -> str:
    known = _ledger(run)
    asked = None if known is None or wait.call is None else known.waits.get(wait.call)
    if asked is None:
        return f"a decision ({detail})"
    who = " or ".join(printable(each, _REASON) for each in asked.who[:3]) + (", …" if len(asked.who) > 3 else "")  # noqa: PLR2004 - enough to know whom to ask
    return f"a decision of {who} ({printable(asked.title, _TITLE)})"


def _ledger(run: Told) -> Ledger | None:
    return ledger(run.state)


def _ended(run: Told, state: Ended, isolation: str) -> Sentence:
    verb = "was" if state.outcome == "cancelled" else "has"
    unsent, shut = len(state.unsent), shut_off(run.ending, isolation) if state.outcome == "failed" else ""
    asked = f"; {run.asked}" if state.outcome == "cancelled" and run.asked else ""
    mail = f"{unsent} of its mails is still to go out" if unsent == 1 else f"{unsent} of its mails are still to go out"
    return Sentence(
        waits_for=f"nothing, as it {verb} {run.ending}{asked}",
        since=run.changed,
        then=f"{mail}, and nothing else follows" if unsent else f"nothing follows{shut}",
        command=command("show", RunId(run.run)),
    )


_FIELDS = ("waits_for", "since", "until", "then", "command", "alternative", "needed")
