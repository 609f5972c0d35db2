"""Trees of child runs under random spawns, take-ups, ends, cancels, pauses, rejections, deaths and restarts.

Whatever comes in whatever order: every call has one outcome at most, and one in the end; nobody is told of an end that
wasn't; no child goes on after its parent has ended, or has let go of it, without having been told to end; and the rule
book finds nothing in any commit (the desk asks it), nor in the tree.
"""

from collections import Counter
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Interrupt,
    Operation,
    Pause,
    Reject,
    RejectHeld,
    ReleaseHeld,
    ResumeRuns,
    TakeUp,
    Unpause,
)
from substrate.operations import Change
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.child_mail import spawner
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import Limits
from waypost.testing.desk import call
from waypost.testing.families import FAILED, ONE, START, Family

LIMITS = Limits(attempts=2, children=3, child_depth=3)
BARRED = ev.Fault(type="GrantMissing", message="no")


class World:
    """A family, and what may happen to it next: each act takes two numbers to choose by."""

    def __init__(self) -> None:
        self.family = Family(limits=LIMITS)
        self.roots = [self.family.root(), self.family.root()]
        self.acts: tuple[Callable[[int, int], None], ...] = (
            self._spawn,
            self._spawn,
            self._take_up,
            self._take_up,
            self._end,
            self._let_go,
            self._rest,
            self._cancel,
            self._pause,
            self._unpause,
            self._reject,
            self._off_hold,
            self._die,
            self._crash,
            self._reopen,
        )

    # --- acts --------------------------------------------------------------------------------------------------------

    def _spawn(self, which: int, number: int) -> None:
        self._act(which, lambda run: self.family.spawning(run, self._a_call(number), seen=number % 2))

    def _take_up(self, which: int, how: int) -> None:
        arrival = self._claimed(which)
        if arrival is not None:
            self._do(TakeUp(arrival=arrival, start=START, barred=BARRED if how % 5 == 0 else None))

    def _reject(self, which: int, how: int) -> None:
        if how % 2 and (arrival := self._claimed(which)) is not None:
            self._do(Reject(arrival, "no-room"))

    def _end(self, which: int, how: int) -> None:
        def ending(run: RunId) -> Operation:
            known = fold.ledger(self.family.state(run))
            cancelled = known is not None and known.cancel is not None
            return self._appending(run, ev.RunCancelled() if cancelled else (ONE, FAILED)[how % 2])

        self._act(which, ending)

    def _let_go(self, which: int, number: int) -> None:
        self._act(which, lambda run: self._appending(run, ev.ChildCancelRequested(call=self._a_call(number))))

    def _rest(self, which: int, seen: int) -> None:
        self._act(which, lambda run: self._appending(run, ev.CodeRested(seen=seen)))

    def _cancel(self, which: int, _how: int) -> None:
        runs = [*self._live(), *(item.queued.entry.run for item in self.family.desk.index.queue.values())]
        if runs:
            self._do(self.family.cancel(runs[which % len(runs)]))

    def _pause(self, which: int, _how: int) -> None:
        self._act(which, lambda run: Pause(run=run, code="operator", detail=""))

    def _unpause(self, which: int, _how: int) -> None:
        self._act(which, lambda run: Unpause(run=run, by="ann"))

    def _off_hold(self, which: int, how: int) -> None:
        held = list(self.family.desk.index.on_hold)
        if held:
            arrival = held[which % len(held)]
            self._do(ReleaseHeld(arrival) if how % 2 else RejectHeld(arrival))

    def _die(self, _which: int, how: int) -> None:
        """The host ends; the next one has what is on disk, and gives the next child what is driven."""
        self._reopen(0, 0)
        self._do(BeginGeneration(blame=how % 2 == 0))
        self._resume()

    def _crash(self, _which: int, _how: int) -> None:
        """The child process ends over what it drives."""
        driven = tuple(each.ledger.run for each in self.family.desk.index.driven())
        self._do(Interrupt(generation=self._generation, runs=driven, reason="ended by SIGKILL"))
        self._do(BeginGeneration())
        self._resume()

    def _reopen(self, _which: int, _how: int) -> None:
        self.family.desk.reopen(self.family.desk.tree)

    # --- how ---------------------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        self._do(ResumeRuns(generation=self._generation, runs=tuple(self._live())))

    @property
    def _generation(self) -> Generation:
        return Generation(self.family.desk.index.state.generation)

    def _a_call(self, number: int) -> CallId:
        return call(number % 5 + 1)

    def _appending(self, run: RunId, event: ev.AnyEvent) -> Operation:
        return Append(by=self.family.by, run=run, events=(event,))

    def _live(self) -> list[RunId]:
        return list(self.family.desk.live())

    def _claimed(self, which: int) -> int | None:
        queue = self.family.desk.index.queue
        if not queue:
            return None
        arrival = list(queue)[which % len(queue)]
        if not queue[arrival].claimed:
            self._do(Claim(arrival))
        return arrival

    def _act(self, which: int, make: Callable[[RunId], Operation]) -> None:
        runs = self._live()
        if runs:
            self._do(make(runs[which % len(runs)]))

    def _do(self, operation: Operation) -> None:
        if isinstance(self.family.desk.do(operation), Change):
            self._hold_true()

    # --- what always holds -------------------------------------------------------------------------------------------

    def _hold_true(self) -> None:
        """After each commit, about the runs that it touched."""
        index = self.family.desk.index
        queued = {item.queued.entry.run for item in index.queue.values()} | {e.run for e in index.on_hold.values()}
        live = self.family.desk.live()
        for run, known in live.items():
            ledger = fold.ledger(known.run)
            assert ledger is not None
            for open_call, child in ledger.children.items():
                assert child.child in queued or self._parent(child.child) == (run, open_call)
                assert child.child in queued or child.child in live
            parent = fold.parent_of(known.run)
            if parent is None:
                continue
            above = fold.ledger(index.known(parent.run).run)
            known_there = None if above is None else above.children.get(parent.call)
            awaited = known_there is not None and known_there.child == run
            assert ledger.cancel is not None or (awaited and known_there is not None and not known_there.cancelling)

    def _parent(self, run: RunId) -> tuple[RunId, CallId] | None:
        parent = fold.parent_of(self.family.state(run))
        return None if parent is None else (parent.run, parent.call)

    def finish(self) -> None:
        """Every run ends, and every mail is taken up: then nothing is open."""
        for _ in range(1000):
            for arrival in list(self.family.desk.index.on_hold):
                self._do(ReleaseHeld(arrival))
            while self.family.desk.index.queue:
                self._take_up(0, 1)
            self._resume()
            live = self.family.desk.live()
            if not live:
                return
            newest = list(live)[-1]
            self._do(Unpause(run=newest, by="ann"))
            self._resume()
            self._end(len(live) - 1, 0)
        raise AssertionError("it never comes to an end")


def outcomes(world: World) -> None:
    """Of each call that has a child: as many outcomes as its parent had time for, which is one if that ended last."""
    desk = world.family.desk
    spawned: set[tuple[RunId, CallId, RunId]] = set()
    done = Counter[tuple[RunId, CallId]]()
    runs = {run for change in desk.changes for run in change.known}
    for run in runs:
        for event in desk.events(run):
            if isinstance(event, ev.ChildSpawned):
                spawned.add((run, event.call, event.child))
            if isinstance(event, ev.ChildCompleted):
                done[run, event.call] += 1
    calls = Counter((run, of_call) for run, of_call, _ in spawned)
    assert all(done[each] <= count for each, count in calls.items())
    assert set(done) <= set(calls)
    for run, of_call, child in spawned:
        state = desk.index.known(run).run
        assert isinstance(state, fold.Ended)
        left = of_call in state.children and state.children[of_call].child == child
        assert left or done[run, of_call] == calls[run, of_call] - (of_call in state.children)
        began = desk.index.known(child).run
        assert isinstance(began, fold.Absent | fold.Ended)


@given(st.lists(st.tuples(st.integers(0, 14), st.integers(0, 9), st.integers(0, 9)), max_size=60))
def test_every_call_has_one_outcome_and_no_child_outlives_its_parent_unasked(inbox: list[tuple[int, int, int]]) -> None:
    """Any order of what may happen."""
    world = World()
    for act, which, how in inbox:
        world.acts[act](which, how)
    world.family.check()
    world.finish()
    outcomes(world)
    world.family.check()
    while world.family.desk.fold_away():
        pass
    assert not world.family.broken()
    assert not any(spawner(entry.id) for entry in world.family.desk.index.on_hold.values())
    assert not world.family.desk.index.queue
