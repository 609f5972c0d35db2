"""A run's two small machines in dispatch, each state reached the way it is reached at work; for pictures and grids."""

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from actors.draining import Doze, Quiesce
from actors.logic.dispatch.card import Away, Card, Counting, Feeding, Live, Opening, Over
from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.state import Open
from actors.messages import GenerationDown, GenerationUp, Woken
from ipc.messages import RunLogCredit
from substrate.messages import (
    Appended,
    Claimed,
    Committed,
    Consumed,
    Done,
    Durable,
    LogPage,
    Outcome,
    Recorded,
    Refused,
    Withheld,
)
from waypost.acting import Next
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation, run_ordinal
from waypost.model.limits import Limits
from waypost.testing.dispatch_bench import CHILD, NOW, RUN, Bench, receiving, step

Make = Callable[[Open], Any]
"""A message that fits a state: one with its correlations and positions."""
NOTHING = Woken(-1)


def apply(state: Open, make: Make) -> Next[Any]:
    """Advance; Any, as a picture doesn't care which state follows."""
    return advance(state, make(state), NOW)


def session(state: Open) -> str:
    """The name of the run's session."""
    return type(_card(state).session).__name__


def child(state: Open) -> str:
    """The name of what dispatch knows of the child."""
    return type(state.child).__name__


def errand(state: Open) -> str:
    """The name of the run's errand."""
    return type(_card(state).errand).__name__


def _open(bench: Bench) -> Open:
    assert isinstance(bench.state, Open)
    return bench.state


def waiting(limits: Limits | None = None) -> Bench:
    """A run with a step under way whose child has gone."""
    bench = Bench(limits)
    bench.up()
    bench.mail()
    bench.settle()
    bench.child(1, step("r1#1"))
    bench.flush()
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    return bench


def sessions() -> tuple[Open, ...]:
    """Every state of a session."""
    away, pending, resumed, opening, live = (waiting() for _ in range(5))
    for bench in (pending, resumed, opening, live):
        bench.up()
    denied, postponed = waiting(), waiting()
    for bench, result in ((denied, Refused("paused", ".")), (postponed, Withheld("."))):
        bench.up()
        bench.answer(result)
    resumed.answer()
    opening.answer()
    opening.flush()
    live.settle()
    feeding, full = (waiting(Limits(page=1, page_credit=credit)) for credit in (2, 1))
    for bench in (feeding, full):
        bench.up()
        bench.answer()
        bench.flush()
        bench.answer()
    return tuple(map(_open, (away, pending, resumed, denied, postponed, opening, feeding, full, live)))


def children() -> tuple[Open, ...]:
    """Every state of the child, over a run that it drives."""
    absent, up, broken, waning, counting, uncounted = (waiting() for _ in range(6))
    broken.up(broken="SyntaxError")
    for bench in (up, waning, counting, uncounted):
        bench.up()
        bench.settle()
    for bench in (counting, uncounted):
        bench.tell(GenerationDown(Generation(2), unexpected=True, reason="ended by SIGSEGV"))
    uncounted.answer(Withheld("."))
    waning.tell(Quiesce(Generation(2)))
    return tuple(map(_open, (absent, up, broken, waning, counting, uncounted)))


def errands() -> tuple[Open, ...]:
    """Every state of an errand: a mail, and a run that waits for it."""
    benches = [Bench() for _ in range(4)]
    for bench in benches:
        bench.up()
        bench.mail()
        bench.settle()
        bench.child(1, receiving("r1#1"))
        bench.flush()
    free, asked, answered, later = benches
    for bench in (asked, answered, later):
        bench.mail(2, to="<m1@x>")
    claim = answered.requests.popleft()
    answered.tell(Outcome(claim.correlation, answered.paper.submit(claim.what)))
    later.answer(Withheld("."))
    return tuple(map(_open, (free, asked, answered, later)))


def _card(state: Open) -> Card:
    """The run's card; for one that rests, what would be on it as far as it is remembered."""
    rests = run_ordinal(RUN) in state.resting
    return state.cards.get(RUN) or Card(id=RUN, run=Over(), session=Live(0) if rests else Away())


def _outcome(result: Any, machine: Callable[[Card], Any]) -> Make:
    def make(state: Open) -> Any:
        correlation = getattr(machine(_card(state)), "correlation", None)
        return NOTHING if correlation is None else Outcome(correlation, result)

    return make


def committed(event: ev.AnyEvent) -> Make:
    """An event of the run was committed, where it may follow."""

    def make(state: Open) -> Any:
        before = _card(state).run
        ledger = fold.ledger(before) if isinstance(before, fold.Driven | fold.Parked | fold.Paused) else None
        if ledger is None:
            return NOTHING
        numbered, raw = ev.stored(event, seq=ledger.seq + 1, at="", prev="")
        try:
            after = fold.evolve(before, numbered, run_id=RUN)  # type: ignore[arg-type]  # a live run, as was just seen
        except fold.Illegal:
            return NOTHING
        return facts(Appended(RUN, (Recorded(numbered, raw),), after))(state)

    return make


def facts(fact: Any) -> Make:
    """A fact of the stream, as the next commit has it."""
    return lambda state: Committed(state.position + 1, state.position + 1, (fact,))


def _page(*, last: bool) -> Make:
    def make(state: Open) -> Any:
        card = _card(state)
        if not isinstance(card.session, Opening | Feeding):
            return NOTHING
        sent = card.session.sent if isinstance(card.session, Feeding) else 0
        count = card.seq - sent if last else 1
        return Outcome(card.session.correlation, Done(0, LogPage(RUN, (b"{}",) * count, card.seq)))

    return make


def _always(message: Any) -> Make:
    return lambda _state: message


def _pending(result: Any) -> Make:
    answer = _outcome(result, lambda card: card.session)
    return lambda state: answer(state) if session(state) == "Pending" else NOTHING


COMING: dict[str, Make] = {
    "GenerationUp": _always(GenerationUp(Generation(3), CHILD)),
    "GenerationUp, broken": _always(GenerationUp(Generation(3), CHILD, "SyntaxError")),
    "GenerationDown": _always(GenerationDown(Generation(9), unexpected=True)),
    "Durable": lambda state: Durable(state.position),
    "Woken": lambda state: Woken(state.retry_wake or 0),
}

SESSION_MESSAGES: dict[str, Make] = {
    **COMING,
    "RunResumed committed": committed(ev.RunResumed(generation=Generation(2))),
    "another event committed": committed(
        ev.StepCompleted(call=CallId("r1#1"), output=ev.Value(inline=Raw(b"1"))),
    ),
    "RunPaused committed": committed(ev.RunPaused(code="operator")),
    "RunFailed committed": committed(ev.RunFailed(error=ev.Fault(type="X", message="x"))),
    "it is done": _pending(Done(0)),
    "it is refused": _pending(Refused("paused", ".")),
    "it is withheld": _pending(Withheld(".")),
    "a page": _page(last=False),
    "the last page": _page(last=True),
    "credit": _always(RunLogCredit(run=RUN)),
}

ERRAND_MESSAGES: dict[str, Make] = {
    **COMING,
    "it is done": lambda state: _outcome(Done(state.position + 1), lambda card: card.errand)(state),
    "it is refused": _outcome(Refused("not-queued", "."), lambda card: card.errand),
    "it is withheld": _outcome(Withheld("."), lambda card: card.errand),
    "Claimed committed": facts(Claimed(2, 1)),
    "Consumed committed": facts(Consumed(2, RUN)),
    "the wait was abandoned": committed(ev.SignalAwaitAbandoned(call=CallId("r1#1"))),
}


def _counted(result: Any) -> Make:
    def make(state: Open) -> Any:
        return Outcome(state.child.correlation, result) if isinstance(state.child, Counting) else NOTHING

    return make


CHILD_MESSAGES: dict[str, Make] = {
    **COMING,
    "GenerationDown, expected": _always(GenerationDown(Generation(9), unexpected=False)),
    "Quiesce": _always(Quiesce(Generation(2))),
    "Doze": _always(Doze(Generation(2))),
    "the run parks": committed(ev.SignalAwaited(call=CallId("r1#2"), park="input", seen=3)),
    "the exit is counted": _counted(Done(0, ())),
    "counting is refused": _counted(Refused("generation", ".")),
    "counting is withheld": _counted(Withheld(".")),
}
