"""The line of those that mail has woken: first come, first taken up; and nobody is waited for who can't, or is slow."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.host.root.line import Line, Patience, Stand, behind, impatient, joined, moved
from waypost.model.ids import Deployment

A, B, C = (Deployment(name) for name in "abc")
ABC = Line(row=(A, B, C))
Stands = Mapping[Deployment, Stand]


def stands(a: Stand, b: Stand, c: Stand = "coming") -> Stands:
    return {A: a, B: b, C: c}


@pytest.mark.parametrize(
    ("found", "left", "calls"),
    [
        (stands("coming", "ready", "ready"), (A, B, C), ()),
        (stands("callable", "ready"), (A, B, C), (A,)),
        (stands("ready", "ready"), (A, B, C), (A,)),
        (stands("over", "ready"), (B, C), (A, B)),
        (stands("over", "coming", "ready"), (B, C), (A,)),
        (stands("over", "over", "over"), (), (A, B, C)),
    ],
)
def test_only_the_first_is_called_and_the_next_when_it_is_over(
    found: Stands, left: tuple[Deployment, ...], calls: tuple[Deployment, ...]
) -> None:
    """Whoever steps out is called as well: what comes for it later waits for nobody."""
    after, called = moved(ABC, found.__getitem__)
    assert (after.row, called) == (left, calls)
    assert moved(after, found.__getitem__)[1] == (), "nobody is called twice"


@pytest.mark.parametrize(
    ("line", "found", "left"),
    [
        (ABC, stands("coming", "ready"), (B, C)),
        (ABC, stands("coming", "callable", "ready"), (C,)),
        (replace(ABC, called=A), stands("ready", "ready"), (B, C)),
        (replace(ABC, called=A), stands("ready", "coming"), (A, B, C)),
        (ABC, stands("coming", "coming"), (A, B, C)),
        (replace(ABC, passed=1), stands("coming", "ready"), (A, B, C)),
    ],
    ids=["slow", "two slow", "called and stuck", "nobody waits for it", "nobody is ready", "somebody got on"],
)
def test_where_nobody_got_on_for_a_while_whoever_is_ready_goes_ahead(
    line: Line, found: Stands, left: tuple[Deployment, ...]
) -> None:
    """All before it step out at once: a hundred that hang cost one pause, not a hundred."""
    paused = replace(line, patience=Patience(7, 0))
    assert impatient(paused, 8, found.__getitem__) == (paused, ())
    after, called = impatient(paused, 7, found.__getitem__)
    assert after.row == left
    assert called == line.row[: len(line.row) - len(left)]
    assert after.patience is None


def test_a_second_mail_keeps_the_place_of_the_first() -> None:
    """And who is behind whom is known where one has to be put back into the row of those that wait to be started."""
    assert joined(ABC, B) == ABC
    assert behind(ABC, A) == {B, C}
    assert behind(Line(), A) == frozenset()


MOVES = st.lists(st.tuples(st.sampled_from(["join", "look", "pause", "stand"]), st.integers(0, 19)), max_size=80)
ROUND: tuple[Stand, ...] = ("coming", "callable", "ready", "over")


@given(MOVES)
def test_who_is_taken_up_in_the_line_is_so_in_the_order_of_arrival(moves: list[tuple[str, int]]) -> None:
    """Whatever they are in between: nobody is called before an earlier one that neither is over nor stepped out."""
    names = [Deployment(str(number)) for number in range(5)]
    found: dict[Deployment, Stand] = dict.fromkeys(names, "coming")
    line, came = Line(), list[Deployment]()
    for what, number in moves:
        name = names[number % 5]
        called: tuple[Deployment, ...] = ()
        before = line.row
        match what:
            case "join":
                came += [name] if name not in line.row else []
                line = joined(line, name)
            case "look":
                line, called = moved(line, found.__getitem__)
            case "pause":
                line, called = impatient(
                    replace(line, patience=Patience(1, line.passed - number % 2)), 1, found.__getitem__
                )
            case _:
                found[name] = ROUND[number // 5]
        assert line.row == tuple(came[len(came) - len(line.row) :]), "the row keeps its order"
        assert set(before) - set(line.row) <= set(called), "whoever leaves the row is told to go ahead"
        still = [each for each in called if each in line.row]
        assert still in ([], [line.row[0]] if line.row else []), "of those that stay only the first is called"
    line, _ = moved(line, lambda _: "over")
    assert not line.row
