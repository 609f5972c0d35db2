"""Large values wait for their turn: never more of them at once than the host keeps, none forgotten, none overtaken."""

from hypothesis import given
from hypothesis import strategies as st

from waypost.child.keeping import Keeping
from waypost.model.ids import RunId

ONE, TWO = RunId("run_1_00112233445566aa"), RunId("run_2_00112233445566aa")
ROOM = 64


class Desk:
    """What was sent, in order."""

    def __init__(self) -> None:
        self.keeping = Keeping(ROOM)
        self.sent: list[str] = []

    def keep(self, run: RunId, name: str, size: int) -> None:
        """Ask for a value to be kept."""
        self.keeping.keep(run, name, size, lambda: self.sent.append(name))


def test_a_value_waits_until_those_before_it_are_named() -> None:
    """Three of 30 don't fit into 64 at once; nothing is refused, as the third goes when the first is recorded."""
    desk = Desk()
    for name in ("a", "b", "c"):
        desk.keep(ONE, name, 30)
    assert desk.sent == ["a", "b"]
    desk.keeping.let_go(ONE, ["x"])
    desk.keeping.let_go(TWO, ["a"])
    assert desk.sent == ["a", "b"]
    desk.keeping.let_go(ONE, ["a"])
    assert desk.sent == ["a", "b", "c"]


def test_a_small_value_does_not_overtake_a_large_one() -> None:
    """Otherwise a stream of small ones would keep the large one out for ever."""
    desk = Desk()
    desk.keep(ONE, "a", 40)
    desk.keep(ONE, "large", 60)
    desk.keep(ONE, "small", 1)
    assert desk.sent == ["a"]
    desk.keeping.let_go(ONE, ["a"])
    assert desk.sent == ["a", "large", "small"]


def test_a_value_over_the_room_goes_alone_so_that_the_host_refuses_it_in_words() -> None:
    """It would wait for ever otherwise, and its run with it."""
    desk = Desk()
    desk.keep(ONE, "a", 1)
    desk.keep(ONE, "huge", ROOM + 1)
    assert desk.sent == ["a"]
    desk.keeping.let_go(ONE, ["a"])
    assert desk.sent == ["a", "huge"]


def test_a_run_that_is_left_gives_its_room_back_and_sends_nothing_more() -> None:
    """Its values will never be named."""
    desk = Desk()
    desk.keep(ONE, "a", 60)
    desk.keep(ONE, "b", 60)
    desk.keep(TWO, "c", 60)
    desk.keeping.forget(ONE)
    assert desk.sent == ["a", "c"]


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO]), st.integers(1, ROOM)), max_size=12), st.randoms())
def test_nothing_that_fits_is_ever_over_the_room_and_all_of_it_goes(sizes: list[tuple[RunId, int]], random) -> None:
    """Whatever comes, and in whatever order it is named."""
    desk, by_name = Desk(), {f"{n}": each for n, each in enumerate(sizes)}
    for name, (run, size) in by_name.items():
        desk.keep(run, name, size)
    named: set[str] = set()
    while len(named) < len(by_name):
        out = [name for name in desk.sent if name not in named]
        assert sum(by_name[name][1] for name in out) <= ROOM
        name = random.choice(out)
        named.add(name)
        desk.keeping.let_go(by_name[name][0], [name])
    assert desk.sent == list(by_name)
