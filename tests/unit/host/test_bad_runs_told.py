"""What people are told of runs that end their process again and again: why they wait, for whom, and what to run."""

from msgspec import structs

from substrate.messages import Append, BeginGeneration, Interrupt, LogPage, ReadLog, ReadRuns, RunLine, Supervisor
from substrate.questions import answer
from waypost.host.answers.records import WaitingOn
from waypost.host.reading import reasons
from waypost.host.reading.explain import Situation
from waypost.host.reading.queued import on_hold
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import Generation, RunId
from waypost.model.limits import DEFAULT, Limits
from waypost.testing.desk import ADDRESS, Desk, call, message

STEP = ev.StepStarted(call=call(1), step="pay", arguments="a" * 64)


class One:
    """One deployment, hosted."""

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.desk = Desk(limits=limits)
        self.desk.begin()
        self.run = self.desk.start(message("m1@x"))

    def situations(self) -> tuple[Situation, ...]:
        """Its own."""
        return (Situation(name="expenses", address=ADDRESS, hosted=True, state="running", limits=self.desk.limits),)

    def runs(self, deployment: str, limit: int) -> tuple[RunLine, ...]:
        """Its runs."""
        return answer(self.desk.index, ReadRuns(limit=limit))

    def page(self, deployment: str, run: RunId, after: int) -> LogPage | None:
        """Events of a run."""
        page = answer(self.desk.index, ReadLog(run=run, after=after, limit=1000))
        return page if isinstance(page, LogPage) else None

    def on_hold(self, deployment: str, limit: int) -> tuple[()]:
        """Nothing."""
        return ()

    def exit(self, reason: str) -> None:
        """The child ends over the run."""
        generation = Generation(self.desk.index.state.generation)
        self.desk.must(Interrupt(generation=generation, reason=reason, runs=(self.run,)))

    def resume(self) -> None:
        """The next child is given the run."""
        generation = Generation(self.desk.must(BeginGeneration()))
        known = fold.ledger(self.desk.index.known(self.run).run)
        assert known is not None
        resumed = ev.RunResumed(generation=generation, attempt=known.attempts)
        self.desk.must(Append(by=Supervisor(), run=self.run, events=(resumed,)))

    def why(self) -> tuple[WaitingOn, ...]:
        """What it waits on."""
        return reasons.of_run(self, self.run).waiting  # type: ignore[arg-type]  # it has all that is asked of it


def test_a_suspect_says_that_it_is_resumed_alone_after_whom_and_what_for() -> None:
    """Nothing moves, and it isn't stuck: others go first, and that is for their sake."""
    one = One()
    one.exit("ended by SIGSEGV")
    one.resume()
    one.exit("exit status 3")
    (turn, own) = one.why()
    assert (turn.kind, own.kind) == ("turn", "child")
    assert turn.detail == "it is resumed alone, after 2 unexpected exits (ended by SIGSEGV; exit status 3)"
    for number in range(3):
        one.desk.start(message(f"other{number}@x"))
    assert one.why()[0].detail.endswith("; up to 3 others go first")
    one.resume()
    assert [each.kind for each in one.why()] == ["child"]  # it has a child: it waits for nobody


def test_one_exit_makes_nobody_wait() -> None:
    """It is resumed with all others."""
    one = One()
    one.exit("ended by SIGSEGV")
    assert [each.kind for each in one.why()] == ["child"]


def test_a_host_with_another_bound_is_believed() -> None:
    """`--limit attempts=5`: two exits make no suspect there."""
    one = One(Limits(attempts=5))
    for _ in range(3):
        one.exit("ended by SIGSEGV")
        one.resume()
    one.exit("ended by SIGSEGV")
    assert [each.kind for each in one.why()] == ["turn", "child"]
    one.resume()
    one = One(Limits(attempts=5))
    one.exit("ended by SIGSEGV")
    one.resume()
    one.exit("ended by SIGSEGV")
    assert [each.kind for each in one.why()] == ["child"]


def test_poison_says_how_its_children_ended_and_the_command_that_lets_it_go_on() -> None:
    """Whoever is woken at night reads one line and knows where to look."""
    one = One()
    for reason in ("ended by SIGSEGV", "ended by SIGKILL"):
        one.exit(reason)
        one.resume()
    one.exit("exit status 3")
    (poison,) = one.why()
    assert poison.kind == "poison"
    assert poison.detail.endswith(
        "3 times without progress between, the last time exit status 3 "
        "(ended by SIGSEGV; ended by SIGKILL; exit status 3)"
    )
    assert poison.command == f"waypost resume {one.run}"


def test_poison_is_listed_with_what_is_on_hold() -> None:
    """It needs somebody, as a mail on hold does."""
    one = One()
    one.desk.append(one.run, STEP)
    for _ in range(3):
        one.exit("ended by SIGSEGV")
        one.resume()
    assert on_hold(one).runs == ()  # type: ignore[arg-type]  # as above
    one.exit("ended by SIGSEGV")
    (held,) = on_hold(one).runs  # type: ignore[arg-type]  # as above
    assert (held.run, held.deployment, held.why) == (one.run, "expenses", "poison")
    assert "4 times" in held.detail
    assert structs.asdict(held)["since"]
