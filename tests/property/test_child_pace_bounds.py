"""The pace of a child under chance: nothing lost, nothing out of order, never faster than it may be."""

from hypothesis import given
from hypothesis import strategies as st

from actors.logic.child.pace import Pace, charge, release
from ipc.messages import AppendResponse
from waypost.model.limits import Limits

LIMITS = Limits(commits=8.0, commits_over=0.5)
GAPS = st.lists(st.integers(0, 6).map(lambda ticks: ticks / 16), min_size=1, max_size=60)


def play(gaps: list[float]) -> list[tuple[float, int]]:
    """Commits with these gaps between them; when each was answered. Whoever is late is woken exactly when it is due."""
    pace, now, answered = Pace(), 0.0, list[tuple[float, int]]()

    def said(at: float, items: tuple[object, ...]) -> None:
        answered.extend((at, item.id) for item in items if isinstance(item, AppendResponse))

    for number, gap in enumerate(gaps):
        now += gap
        while pace.late and pace.late[0].due <= now:
            due = pace.late[0].due
            pace, items = release(pace, due)
            said(due, items)
        pace, items = charge(pace, (AppendResponse(id=number),), now, LIMITS)
        said(now, items)
    while pace.late:
        due = pace.late[0].due
        pace, items = release(pace, due)
        said(due, items)
    return answered


@given(GAPS)
def test_every_answer_leaves_once_in_order_and_never_too_fast(gaps: list[float]) -> None:
    """In any stretch of time there are no more than the average allows over it and the window together."""
    answered = play(gaps)
    assert [number for _, number in answered] == list(range(len(gaps)))
    times = [at for at, _ in answered]
    assert times == sorted(times)
    for first, begun in enumerate(times):
        for last, ended in enumerate(times[first:], first):
            assert last - first + 1 <= LIMITS.commits * (LIMITS.commits_over + ended - begun) + 1


@given(GAPS)
def test_a_child_within_its_rate_is_never_held_back(gaps: list[float]) -> None:
    """Each at least an eighth of a second after the one before: answered in the moment in which it is done."""
    slow = [gap + 1 / LIMITS.commits for gap in gaps]
    now, expected = 0.0, []
    for gap in slow:
        now += gap
        expected.append(now)
    assert [at for at, _ in play(slow)] == expected
