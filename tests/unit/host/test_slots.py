"""Who may be awake: the bound holds, the row keeps its order, and nobody waits for ever."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from waypost.host.root.slots import (
    HOST,
    ONE,
    VAIN,
    Enter,
    Patience,
    Press,
    Slots,
    anew,
    entered,
    impatient,
    left,
    most,
    moves,
    wants,
)
from waypost.model.ids import Deployment
from waypost.model.limits import DEFAULT, Limits

LIMITS = Limits(threads=HOST + 2 * ONE)
A, B, C, D, E = (Deployment(name) for name in "abcde")
ALL = frozenset({A, B, C, D})
NOBODY = frozenset[Deployment]()


def waiting(*names: Deployment, slots: Slots | None = None) -> Slots:
    """These are woken, in this order."""
    found = slots or Slots()
    for name in names:
        found = wants(found, name)
    return found


def test_as_many_are_awake_as_the_threads_allow() -> None:
    """One number, from the threads; none where nobody sleeps."""
    assert most(LIMITS) == 2
    assert most(DEFAULT) == 33
    assert most(Limits(threads=1)) == 1
    assert most(Limits(idle=0.0)) is None


def test_whoever_comes_first_enters_first_and_the_others_wait() -> None:
    """Those who have been awake longest are asked to give way, as many as wait."""
    slots, made = moves(waiting(A, B, C), LIMITS, uncounted=(), may_leave=ALL)
    assert made == (Enter(A), Enter(B), Press(A))
    assert slots.waiting == (C,)
    again, made = moves(wants(slots, D), LIMITS, uncounted=(), may_leave=ALL)
    assert made == (Press(B),)
    gone, made = moves(left(again, B), LIMITS, uncounted=(), may_leave=ALL)
    assert made == (Enter(C),)
    assert gone.waiting == (D,)


def test_who_can_not_leave_is_not_asked_and_takes_nobody_s_place() -> None:
    """One that is kept warm, or that is held, has no process to let go of."""
    slots, made = moves(waiting(A, B, C, D), LIMITS, uncounted={A, C}, may_leave={B, D})
    assert made == (Enter(A), Enter(B), Enter(C), Enter(D))
    assert not slots.waiting


def test_where_nobody_sleeps_everybody_enters() -> None:
    """As it was before there was sleep."""
    _, made = moves(waiting(A, B, C, D), replace_idle(LIMITS), uncounted=(), may_leave=ALL)
    assert made == (Enter(A), Enter(B), Enter(C), Enter(D))


def replace_idle(limits: Limits) -> Limits:
    """The same without sleep."""
    return Limits(threads=limits.threads, idle=0.0)


def test_who_is_on_the_way_in_for_ever_keeps_nobody_out() -> None:
    """A process that hangs while it starts is started again ten times, half a minute each: minutes for all others."""
    slots, _ = moves(waiting(A, B, C), LIMITS, uncounted=(), may_leave=())
    for look in range(VAIN):
        assert Enter(C) not in moves(slots, LIMITS, uncounted=(), may_leave=())[1], look
        slots = impatient(
            replace(slots, patience=Patience(7, slots.entered)), 7, moving=frozenset({A}), up=(), beyond=0
        )
    assert moves(slots, LIMITS, uncounted=(), may_leave=())[1] == (Enter(C),)


def test_who_hangs_has_each_that_comes_wait_no_longer_than_one_that_works() -> None:
    """A pause each, once it has been on the way for half a minute, whoever has come in since; others are waited for."""
    slots, _ = moves(waiting(A, B), LIMITS, uncounted=(), may_leave=())

    def pause(slots: Slots, *moving: Deployment, entered: int) -> tuple[Slots, tuple[object, ...]]:
        looked = impatient(replace(slots, patience=Patience(7, entered)), 7, moving=frozenset(moving), up=(), beyond=0)
        return moves(looked, LIMITS, uncounted=(), may_leave=())

    for _ in range(VAIN - 1):
        slots, _ = pause(slots, A, entered=slots.entered - 1)
    for name in (C, D):
        slots, made = pause(wants(slots, name), A, entered=slots.entered)
        assert made == (Enter(name),)
    slots, made = pause(wants(slots, E), A, D, entered=slots.entered)
    assert made == (), "D will make room, or is up in a moment"
    slots, made = pause(wants(left(slots, A), A), B, entered=slots.entered)
    assert made == (Enter(E),), "in the place of the one that hung"
    assert pause(slots, A, entered=slots.entered)[1] == (), "that counts anew"


def test_who_was_slow_to_come_in_is_waited_for_again_once_it_has_been_up() -> None:
    """It has hung when it started, days ago; now it falls asleep, and makes room in a moment."""
    slots, _ = moves(waiting(A, B, C), LIMITS, uncounted=(), may_leave=())
    for _ in range(VAIN):
        slots = replace(slots, patience=Patience(7, slots.entered))
        slots = impatient(slots, 7, moving=frozenset({A}), up={B}, beyond=0)
    assert slots.extra == 1
    up = impatient(replace(slots, patience=Patience(7, slots.entered - 1)), 7, moving=NOBODY, up={A, B}, beyond=0)
    again = impatient(replace(up, patience=Patience(7, up.entered)), 7, moving=frozenset({A}), up={B}, beyond=0)
    assert again.extra == 1


def test_one_more_comes_in_also_where_others_are_over_the_bound_that_waited_for_no_place() -> None:
    """Such as are held and go on, or sleep and are deployed anew: one pause, not one for each of them."""
    slots, _ = moves(waiting(A, B, C, D), LIMITS, uncounted={A, B}, may_leave=ALL)
    slots, made = moves(wants(slots, E), LIMITS, uncounted=(), may_leave=ALL)
    assert Enter(E) not in made
    slots = replace(slots, patience=Patience(7, slots.entered))
    _, made = moves(impatient(slots, 7, moving=NOBODY, up=(), beyond=2), LIMITS, uncounted=(), may_leave=ALL)
    assert Enter(E) in made


def test_who_goes_on_anew_is_asked_anew_to_give_way() -> None:
    """Its supervisor is another one, or has forgotten that it was asked."""
    slots, _ = moves(waiting(A, B, C), LIMITS, uncounted=(), may_leave=ALL)
    assert moves(slots, LIMITS, uncounted=(), may_leave=ALL)[1] == ()
    assert moves(anew(slots, A), LIMITS, uncounted=(), may_leave=ALL)[1] == (Press(A),)


def test_when_nobody_comes_in_for_a_while_one_more_does() -> None:
    """All are at work, and may be for hours: the bound isn't worth that."""
    slots, _ = moves(waiting(A, B, C, D), LIMITS, uncounted=(), may_leave=ALL)
    slots = replace(slots, patience=Patience(7, slots.entered))
    assert impatient(slots, 6, moving=NOBODY, up=(), beyond=0) == slots
    assert impatient(slots, 7, moving=frozenset({A}), up=(), beyond=0).extra == 0, (
        "somebody makes room: it is the machine that is busy"
    )
    slots, made = moves(impatient(slots, 7, moving=NOBODY, up=(), beyond=0), LIMITS, uncounted=(), may_leave=ALL)
    assert Enter(C) in made
    assert slots.waiting == (D,)
    moving = replace(slots, patience=Patience(8, slots.entered - 1))
    assert (
        Enter(D)
        not in moves(impatient(moving, 8, moving=NOBODY, up=(), beyond=0), LIMITS, uncounted=(), may_leave=ALL)[1]
    )


def test_who_was_let_in_over_the_bound_makes_the_next_wait_no_longer() -> None:
    """One pause for each: the fifth of those who came in that way was kept out for five of them, and so on."""
    slots, _ = moves(waiting(A, B), LIMITS, uncounted=(), may_leave=ALL)
    for name in (C, D):
        slots, _ = moves(wants(slots, name), LIMITS, uncounted=(), may_leave=ALL)
        slots = impatient(replace(slots, patience=Patience(7, slots.entered)), 7, moving=NOBODY, up=(), beyond=0)
        slots, made = moves(slots, LIMITS, uncounted=(), may_leave=ALL)
        assert Enter(name) in made
    for over, name in ((1, A), (0, B)):
        slots, _ = moves(left(slots, name), LIMITS, uncounted=(), may_leave=ALL)
        assert slots.extra == over, "it holds again as they leave"


def test_who_can_not_give_way_is_asked_beside_others_and_not_in_their_place() -> None:
    """One whose code doesn't load, or that works for hours: whoever came had to wait for it, and nobody else was asked.

    One that is on its way out will make room.
    """
    slots, made = moves(waiting(A, B, C), LIMITS, uncounted=(), may_leave=ALL)
    assert Press(A) in made
    out = impatient(replace(slots, patience=Patience(7, slots.entered)), 7, moving=frozenset({A}), up=(), beyond=0)
    assert moves(out, LIMITS, uncounted=(), may_leave=ALL)[1] == ()
    slots = impatient(replace(slots, patience=Patience(7, slots.entered)), 7, moving=NOBODY, up=(), beyond=0)
    slots, _ = moves(slots, LIMITS, uncounted=(), may_leave=ALL)
    slots, made = moves(wants(slots, D), LIMITS, uncounted=(), may_leave=ALL)
    assert made == (Press(B),)
    assert moves(left(slots, B), LIMITS, uncounted=(), may_leave=ALL)[1] == (Enter(D),)


def test_who_is_awake_already_is_not_woken_twice() -> None:
    """It keeps its place in the row, too."""
    assert waiting(A, B, A).waiting == (A, B)


NAMES = [Deployment(f"d{n}") for n in range(8)]


@given(st.lists(st.tuples(st.sampled_from(["wake", "sleep", "pause"]), st.integers(0, 7)), max_size=60))
def test_no_wake_is_lost_the_order_is_kept_and_the_bound_holds(acts: list[tuple[str, int]]) -> None:
    """Whatever comes in whatever order; and when all who were pressed have gone, all have been awake."""
    slots, woken, came, impatience = Slots(), list[Deployment](), list[Deployment](), 0

    def settle(after: Slots) -> Slots:
        following, made = moves(after, LIMITS, uncounted=(), may_leave=frozenset(NAMES))
        came.extend(each.name for each in made if isinstance(each, Enter))
        assert all(each.name in following.awake for each in made if isinstance(each, Press))
        assert len(following.awake) <= 2 + impatience
        assert following.late <= following.pressed <= {*following.awake}
        assert bool(following.waiting) <= (len(following.awake) >= 2)
        return following

    for what, number in acts:
        name = NAMES[number]
        if what == "wake" and name not in slots.awake and name not in slots.waiting:
            woken.append(name)
            slots = settle(wants(slots, name))
        elif what == "sleep" and name in slots.awake:
            slots = settle(left(slots, name))
        elif what == "pause" and slots.waiting:
            impatience += 1
            slots = settle(
                impatient(replace(slots, patience=Patience(1, slots.entered)), 1, moving=NOBODY, up=(), beyond=0)
            )
        assert [*came, *slots.waiting] == woken
    while slots.waiting:
        assert slots.pressed, "somebody waits, and nobody was asked to give way"
        slots = settle(left(slots, min(slots.pressed)))
    assert came == woken


def test_what_enters_is_counted() -> None:
    """By it is seen whether anybody has come in."""
    assert entered(waiting(A), A) == Slots(awake={A: None}, entered=1)
