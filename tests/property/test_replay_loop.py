"""Random asyncio programs, outcomes in random order, killed at a random event and replayed: not one may go astray.

The programs use every way of asyncio to wait that a workflow may use. Replays with other object addresses must ask for
the same calls with the same arguments and end with the same result.
"""

import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from waypost.authoring.requests import CallStep, Sleep
from waypost.child.loop import WorkflowLoop
from waypost.child.program import Asked, Finished, Gave, GaveUp, Outcome, Raised, Rest, Turn, Waiting
from waypost.model.ids import CallId
from waypost.testing.random_program import RandomProgram, mix

# --- driving it -----------------------------------------------------------------------------------------------------

Entry = tuple[CallId, str, Outcome, float]


@dataclass
class Driven:
    """A program under way: what it has asked for, what is open, where it stands."""

    seed: int
    asked: dict[CallId, str] = field(default_factory=dict)
    open: dict[CallId, str] = field(default_factory=dict)
    due: dict[CallId, float] = field(default_factory=dict)
    now: float = 0.0
    rest: Rest = field(default_factory=Waiting)

    def __post_init__(self) -> None:
        self.loop = WorkflowLoop.create(RandomProgram(self.seed).main, self.take)
        self.loop.start(0.0)

    def take(self, turn: Turn) -> None:
        """Note what a turn asked for."""
        for command in turn.commands:
            match command:
                case Asked(call, CallStep() as step):
                    self.asked[call] = self.open[call] = step.args[0]
                case Asked(call, Sleep(delay)):
                    self.asked[call] = self.open[call] = "timer"
                    self.due[call] = self.now + delay
                case GaveUp(call):
                    self.open.pop(call, None)
                case _:
                    raise AssertionError(command)
        self.rest = turn.rest

    def deliver(self, entry: Entry) -> None:
        """Give the program one outcome of the log."""
        call, arguments, outcome, self.now = entry
        assert self.asked.get(call) == arguments, f"{call}: log has {arguments}, code asked {self.asked.get(call)}"
        self.open.pop(call, None)
        self.loop.deliver(call, outcome, self.now)

    def go_on(self, rng: random.Random, log: list[Entry], stop_after: int | None = None) -> None:
        """Answer open calls in random order until the program ends or the log has so many entries."""
        while not isinstance(self.rest, Finished) and len(log) != stop_after:
            call = rng.choice(sorted(self.open))
            arguments = self.open[call]
            now = max(self.now, self.due[call]) if arguments == "timer" else self.now + rng.random() * 3
            outcome = Gave(None) if arguments == "timer" else Gave(mix(arguments))
            log.append((call, arguments, outcome, now))
            self.deliver(log[-1])

    def result(self) -> object:
        """What the program came to."""
        assert isinstance(self.rest, Finished)
        match self.rest.outcome:
            case Gave(value):
                return value
            case Raised(error):
                return type(error).__name__


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), junk=st.integers(0, 500), where=st.floats(0, 1, exclude_max=True))
def test_a_run_killed_at_any_event_goes_the_same_way_again(seed: int, junk: int, where: float) -> None:
    """The promise of replay: same calls, same arguments, same result, whatever order outcomes came in."""
    log: list[Entry] = []
    whole = Driven(seed)
    whole.go_on(random.Random(seed), log)

    addresses = [object() for _ in range(junk)]
    again = Driven(seed)
    for entry in log:
        again.deliver(entry)
    assert again.result() == whole.result()

    cut = int(where * (len(log) + 1))
    killed_log: list[Entry] = []
    killed = Driven(seed)
    killed.go_on(random.Random(seed), killed_log, stop_after=cut)
    resumed = Driven(seed)
    for entry in killed_log:
        resumed.deliver(entry)
    assert resumed.open == killed.open
    resumed.go_on(random.Random(seed + 1), killed_log)
    for driven in (whole, again, killed, resumed):
        driven.loop.drop()
    del addresses
