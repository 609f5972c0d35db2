"""The list of runs by state and by deployment: however far back a run lies, at a page's cost at a time."""

import pytest

from substrate.messages import RunLine
from waypost.host.errors import Usage
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.reading.explain import Situation
from waypost.host.reading.runs import LIVE, STATES, listed
from waypost.host.reading.source import LIST
from waypost.model.ids import RunId, run_id

ENTROPY = b"12345678"


class Many:
    """A source of two deployments: one has many runs that completed over a few others, one has a single run."""

    def __init__(self, older: list[str]) -> None:
        self.states = ["completed"] * (2 * LIST) + older
        self.asked = 0

    def situations(self) -> tuple[Situation, ...]:
        """Both."""
        return tuple(Situation(name=name, address=f"{name}@example.com", hosted=False) for name in ("many", "one"))

    def runs(self, deployment: str, limit: int, before: RunId | None = None) -> tuple[RunLine, ...]:
        """A page of the list."""
        self.asked += 1
        states = self.states if deployment == "many" else ["parked"]
        lines = [
            RunLine(run=run_id(number, ENTROPY), state=state, started=f"{number:09}", changed="", seq=1)
            for number, state in zip(range(len(states), 0, -1), states, strict=True)
        ]
        since = 0 if before is None else next(at for at, line in enumerate(lines, 1) if line.run == before)
        return tuple(lines[since : since + limit])


def states_of(source: Many, *states: str, limit: int = LIST, deployment: str | None = None) -> list[str]:
    """What a list has."""
    answer = listed(source, limit, deployment=deployment, states=states)  # type: ignore[arg-type]  # all that is asked of it
    return [row.state for row in answer.runs]


@pytest.mark.parametrize("state", STATES)
def test_a_run_in_a_state_is_found_behind_thousands_in_another(state: str) -> None:
    """As an operator looks for what failed, or what waits, among all that went well."""
    many = Many([state])
    found = states_of(many, state, deployment="many")
    assert (found == [state]) if state != "completed" else (len(found) == LIST)
    assert many.asked <= 3, "no page is read twice"


def test_live_is_whatever_has_not_ended() -> None:
    """One word for five states."""
    assert states_of(Many(list(STATES)), "live", deployment="many") == list(LIVE)
    assert sorted(states_of(Many(["paused"]), "live")) == ["parked", "paused"]


def test_a_list_says_that_it_leaves_out_older_ones() -> None:
    """So many are shown as were asked for, and no page is asked for in vain."""
    many = Many(["failed"] * 3)
    answer = listed(many, 2, states=["failed"])  # type: ignore[arg-type]  # all that is asked of it
    assert (len(answer.runs), answer.more) == (2, True)
    assert states_of(Many([]), limit=5, deployment="many") == ["completed"] * 5


def test_what_no_run_is_and_who_is_not_there_is_refused() -> None:
    """The words of the refusal name what there is."""
    with pytest.raises(Usage, match="lost") as refused:
        states_of(Many([]), "lost")
    assert "parked" in refused.value.hint
    with pytest.raises(NoSuchDeployment, match="mnay"):
        states_of(Many([]), deployment="mnay")
