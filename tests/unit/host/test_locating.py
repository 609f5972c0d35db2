"""A run is found among thousands of deployments that sleep without looking into each."""

from typing import cast

import pytest

from substrate.errors import RepositoryGone
from substrate.messages import LogPage, RunLine
from waypost.host.errors import NoSuchRun
from waypost.host.reading.explain import Situation
from waypost.host.reading.source import Source, locate
from waypost.model.ids import RunId

MANY = 2000
RUN, OTHER = RunId("run_7_00112233445566aa"), RunId("run_8_00112233445566aa")


class Shelf:
    """So many deployments that sleep; the last but one has the run. ``looked`` counts those that were looked into."""

    def __init__(self, *named: RunId) -> None:
        self.named, self.looked = named, 0

    def situations(self) -> tuple[Situation, ...]:
        """All of them."""
        live = {f"d{MANY - 2}": self.named}
        names = (f"d{number}" for number in range(MANY))
        return tuple(
            Situation(name=each, address="", hosted=True, state="dormant", live=live.get(each, ())) for each in names
        )

    def page(self, deployment: str, run: RunId, _after: int) -> LogPage | None:
        """The run's log."""
        self.looked += 1
        return LogPage(run, (b"{}",), 1) if (deployment, run) == (f"d{MANY - 2}", RUN) else None

    def runs(self, _deployment: str, _limit: int) -> tuple[RunLine, ...]:
        """None that anybody lists."""
        self.looked += 1
        return ()


def test_who_names_the_run_is_looked_into_first() -> None:
    """Its note, or its supervisor's last word, says which runs it has."""
    shelf = Shelf(RUN)
    situation, run = locate(cast(Source, shelf), RUN)
    assert (situation.name, run, shelf.looked) == (f"d{MANY - 2}", RUN, 1)


def test_a_run_that_nobody_names_is_still_found() -> None:
    """It has ended, or there are more of them than are named."""
    situation, _ = locate(cast(Source, Shelf(OTHER)), RUN)
    assert situation.name == f"d{MANY - 2}"


def test_a_run_that_is_named_and_is_not_there_is_not_made_up() -> None:
    """The repository is the only truth."""
    with pytest.raises(NoSuchRun):
        locate(cast(Source, Shelf(OTHER)), OTHER)


class Ruin(Shelf):
    """Three deployments: the first one's repository is gone, the second one has the run where it is ``there``."""

    def __init__(self, *, there: bool) -> None:
        super().__init__()
        self.there = there

    def situations(self) -> tuple[Situation, ...]:
        """All of them."""
        return tuple(Situation(name=each, address="", hosted=False) for each in ("gone", "whole", "empty"))

    def page(self, deployment: str, run: RunId, _after: int) -> LogPage | None:
        """The run's log."""
        if deployment == "gone":
            raise RepositoryGone("gone.git", "flush 9")
        return LogPage(run, (b"{}",), 1) if self.there and (deployment, run) == ("whole", RUN) else None

    def runs(self, deployment: str, _limit: int) -> tuple[RunLine, ...]:
        """The one, in a list."""
        if deployment == "gone":
            raise RepositoryGone("gone.git", "flush 9")
        return (
            (RunLine(run=RUN, state="running", started="", changed="", seq=1),)
            if self.there and deployment == "whole"
            else ()
        )


@pytest.mark.parametrize("text", [RUN, "run_7"])
def test_a_repository_that_is_gone_hides_no_run_of_another(text: str) -> None:
    """It has nothing that could be meant; where nobody has it, that is what there is to say."""
    situation, run = locate(cast(Source, Ruin(there=True)), text)
    assert (situation.name, run) == ("whole", RUN)
    with pytest.raises(RepositoryGone):
        locate(cast(Source, Ruin(there=False)), text)
