"""Child runs among what is granted, as an operator reads it: declared, listed, none; and what deploy says of them."""

import pytest
from msgspec import UNSET

from substrate.messages import InForce
from waypost.cli.granting import introduced, told
from waypost.host.reading.granted import GrantsSet, GrantsShown, shown
from waypost.model.grants import RUN, StepGrants, granted

DECLARED = ("ask", "pay")


def answer(run: StepGrants) -> GrantsShown:
    """What ``grants show`` reads, of a workflow with two children."""
    return shown("expenses", InForce({RUN: run}), steps=(), mail_to=(), children=DECLARED, asked=())


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (granted(), "mail as its workflow declares"),
        (granted(children=["pay"]), "child runs of pay, mail as its workflow declares"),
        (granted(children=[]), "no child run, mail as its workflow declares"),
    ],
    ids=["declared", "one", "none"],
)
def test_what_a_run_is_granted_is_told_in_a_line(run: StepGrants, said: str) -> None:
    """Nothing said of children is as the code declares them, which isn't the same as none."""
    done = GrantsSet(deployment="expenses", step=RUN, grants=run, by="ann")
    assert told(done) == f"expenses: the run is granted {said}"


@pytest.mark.parametrize(
    ("run", "listed", "refused"),
    [
        (granted(), None, []),
        (granted(children=["pay"]), ("pay",), ["is granted no child runs of ask, which it declares"]),
        (granted(children=[]), (), ["is granted no child runs of ask, pay, which it declares"]),
    ],
    ids=["declared", "one", "none"],
)
def test_deploy_says_which_declared_children_an_operators_list_leaves_out(
    run: StepGrants, listed: tuple[str, ...] | None, refused: list[str]
) -> None:
    """New code with a new child under an old list would be refused at the first call, perhaps in a week."""
    found = answer(run)
    assert (found.steps[0].children, found.declared_children) == (listed, DECLARED)
    assert list(introduced(found)) == refused


def test_a_child_that_is_granted_and_not_declared_is_no_news_at_a_deploy() -> None:
    """It is left from other code; the code decides what there is to start."""
    assert not list(introduced(answer(granted(children=[*DECLARED, "old"]))))
    assert granted().children is UNSET
