"""Who may do what with a repository: the matrix of storage §4."""

import pytest

from substrate.access import ACTIONS, AUTHORS, EVERY, Action, Who
from substrate.principals import TABLE


@pytest.mark.parametrize("action", EVERY)
@pytest.mark.parametrize("who", ACTIONS)
def test_principals_have_their_row_of_the_matrix(who: Who, action: Action) -> None:
    """Readers read; a child commits through the host, makes no repository and takes no pack in."""
    reads, commits = action in {"create-pack", "resolve"}, action == "write"
    expected = {"reader": reads, "workflow-process": reads or commits}
    assert (action in ACTIONS[who]) == expected.get(who, True)


def test_only_who_may_commit_writes_events() -> None:
    """The two tables agree: every event has an author that may commit, and nobody else."""
    assert frozenset[str]().union(*(rule.who for rule in TABLE.values())) == AUTHORS
