"""Dispatch under any order of messages: the real rules of the substrate, a child that checks the protocol, and chance.

Substrate, dispatch, child and clock are served in a random order, and the dispatch sees the stream and the answers each
in its own order, so that every answer may be late or early; children die at any moment. What must hold at any time is
asserted by the child and by the rules; what must hold in the end is asserted once everything has come to rest.
"""

from collections import Counter, deque
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.draining import Close, Quiesce, RecycleRequested, StillExecuting
from actors.effects import Ask, ToSupervisor
from actors.exits import ExitCounted
from actors.logic.dispatch.card import Waning
from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.routing import accepting_wait
from actors.logic.dispatch.state import Open, State, Unopened
from actors.logic.dispatch.turn import Setup
from actors.messages import GenerationDown, GenerationUp, Send
from ipc.messages import RunLive, RunLogCredit, RunStart, ToChild
from substrate.messages import (
    Append,
    Appended,
    BeginGeneration,
    Cancel,
    Claim,
    Consumed,
    Done,
    Enqueue,
    Outcome,
    Pause,
    QueueMail,
    ReadLog,
    Start,
    TakeUp,
    Unpause,
    Withheld,
    WorkflowProcess,
)
from waypost.acting import Tell, WakeAt
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing.paper import Paper
from waypost.testing.paper_child import PaperChild

HASH = "a" * 64
START = Start(definition=HASH, code=HASH, python="3.11", waypost="0", mail_to=("boss@example.com",))
LIMITS = Limits(page=700, page_credit=2)


class World:
    """Everything between which messages are on their way."""

    def __init__(self, runs: Any) -> None:
        self.paper = Paper(runs=runs, limits=LIMITS)
        self.dispatch: State = Unopened(Setup(start=START, limits=LIMITS))
        self.to_dispatch: deque[Any] = deque([self.paper.snapshot()])
        self.answers: deque[Outcome] = deque()
        self.to_substrate: deque[tuple[Any, int | None]] = deque()
        self.to_child: deque[tuple[Generation, Any]] = deque()
        self.now = Now(0, 0.0)
        self.wakes: list[WakeAt] = []
        self.child: PaperChild | None = None
        self.up: Generation | None = None
        self.mails = 0
        self.full = False
        """Whether the disk takes nothing."""
        self.taken: Counter[int] = Counter()
        self.requests = 0
        self.given: dict[RunId, int] = {}
        """Where each run's newest RunStarted or RunResumed was committed."""
        self.starts: dict[Generation, set[RunId]] = {}
        """Which runs each child was sent."""
        self.counting: Generation | None = None
        """Whose exit is being counted: until it is, no other child comes."""
        self.drained: set[Generation] = set()
        self.closed: set[Generation] = set()
        """Children with whom no run is to begin."""
        self.quiet: set[Generation] = set()
        """Children that dispatch was told to bring to rest."""
        self.told: StillExecuting | None = None
        """Who is at work, as it has said last."""

    # --- serving the mailboxes ---

    def serve_substrate(self) -> None:
        """One message of the substrate's mailbox."""
        if not self.to_substrate:
            return
        what, correlation = self.to_substrate.popleft()
        writes = not isinstance(what, ReadLog)
        result = Withheld("full") if self.full and writes else self.paper.submit(what)
        for fact in self.paper.facts():
            if isinstance(fact, Consumed):
                self.taken[fact.arrival] += 1
            if isinstance(fact, Appended):
                given = [each for each in fact.events if isinstance(each.event, ev.RunStarted | ev.RunResumed)]
                self.given.update({fact.run: self.paper.position} if given else {})
        self.to_dispatch.extend(self.paper.taken())
        if correlation is not None:
            self.answers.append(Outcome(correlation, result))

    def flush(self) -> None:
        """What is visible becomes durable."""
        self.paper.flush()
        self.to_dispatch.extend(self.paper.taken())

    def serve_dispatch(self) -> None:
        """One message for the dispatch, and what it leads to."""
        if self.to_dispatch:
            self._tell_dispatch(self.to_dispatch.popleft())

    def serve_answer(self) -> None:
        """One answer for the dispatch, and what it leads to."""
        if self.answers:
            self._tell_dispatch(self.answers.popleft())

    def _tell_dispatch(self, message: Any) -> None:
        if isinstance(message, Quiesce):
            self.quiet.add(message.generation)
        if isinstance(message, Close):
            self.closed.add(message.generation)
        following = advance(self.dispatch, message, self.now)
        self.dispatch = following.state
        for effect in following.effects:
            match effect:
                case Ask(correlation, what, _stage):
                    waning = isinstance(self.dispatch, Open) and isinstance(self.dispatch.child, Waning)
                    assert not (waning and isinstance(what, Claim | TakeUp)), "a claim while it drains"
                    begins_one = isinstance(what, TakeUp) and what.start is not None
                    assert not (begins_one and self.up in self.closed), "a run begins, and none is to"
                    self.requests += 1
                    self.to_substrate.append((what, correlation))
                case Tell(generation, Send() as send):
                    for payload in send.payloads:
                        self.sent(generation, payload)  # type: ignore[arg-type]  # a number stands for the ref
                case WakeAt():
                    self.wakes.append(effect)
                case ToSupervisor(StillExecuting() as told):
                    assert told.generation in self.quiet
                    assert told != self.told, "told twice"
                    self.told = told
                case ToSupervisor(ExitCounted() as counted):
                    assert counted.generation == self.counting, "an exit is counted twice, or one that there was not"
                    had = self.starts.get(counted.generation, set())
                    assert {each.run for each in counted.runs} <= had, "charged, and the child never had it"
                    self.counting = None
                case ToSupervisor(RecycleRequested() as wish):
                    assert wish.generation == self.up, "a fresh process in place of one that is gone"
                case _:
                    raise AssertionError(effect)

    def sent(self, generation: Generation, payload: ToChild) -> None:
        """Something leaves for the child of a generation."""
        begins = isinstance(payload, RunStart | RunLive)
        assert not (begins and generation in self.quiet), "begun while it drains"
        if isinstance(payload, RunStart):
            assert self.given[RunId(payload.run)] <= self.paper.durable, "run.start before durable"
            self.starts.setdefault(generation, set()).add(RunId(payload.run))
        self.to_child.append((generation, payload))

    def serve_child(self) -> None:
        """One message reaches its child, or nobody."""
        if not self.to_child:
            return
        generation, payload = self.to_child.popleft()
        if self.child is not None and self.child.generation == generation:
            self.child.take(payload)

    def wake(self) -> None:
        """The clock keeps its promises."""
        due = [wake for wake in self.wakes if (wake.mono or 0.0) <= self.now.mono]
        self.wakes = [wake for wake in self.wakes if wake not in due]
        self.to_dispatch.extend(wake.message for wake in due)

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now = Now(0, self.now.mono + seconds)
        self.wake()

    # --- what happens ---

    def mail(self, choice: int) -> None:
        """A mail comes: a new one or one of a thread, from one person or another, with an answer or none."""
        self.mails += 1
        known = self.paper.runs()
        thread = ""
        if known and choice % 3:
            run = known[choice % len(known)]
            state = self.paper.index.known(run).run
            names = sorted((*fold_ids(state),))
            thread = f"In-Reply-To: {names[choice % len(names)]}\r\n"
        sender = ("boss@example.com", "claire@example.com")[choice % 2]
        word = ("yes", "no", "well")[choice % 3]
        raw = f"Message-ID: <m{self.mails}@x>\r\nFrom: {sender}\r\n{thread}\r\n{word}\r\n".encode()
        self.to_substrate.append((Enqueue(raw), None))

    def spawn(self, *, broken: bool) -> None:
        """What a supervisor does: the old child down, its exit counted, the generation raised durably, the new one up.

        On a disk that takes nothing, it waits.
        """
        self.kill(unexpected=True)
        while self.counting is not None and not self.full:
            self.wait(LIMITS.backoff_first)
            self.some_rounds(5)
            self.flush()
        if self.full:
            return
        while self.to_substrate:  # BeginGeneration waits in the mailbox behind whatever is there already
            self.serve_substrate()
        done = self.paper.submit(BeginGeneration())
        assert isinstance(done, Done)
        self.to_dispatch.extend(self.paper.taken())
        self.flush()
        self.up = done.value
        self.child = PaperChild(done.value, LIMITS)
        self.to_dispatch.append(GenerationUp(done.value, done.value, "no such module" if broken else ""))

    def kill(self, *, unexpected: bool) -> None:
        """The child is gone, and its dispatch is told."""
        if self.up is not None:
            self.counting = self.up if unexpected else None
            self.to_dispatch.append(GenerationDown(self.up, unexpected))
        self.up = self.child = None

    def drain(self) -> None:
        """What a supervisor does before it replaces a child; once for each."""
        if self.up is not None and self.up not in self.drained:
            self.drained.add(self.up)
            self.to_dispatch.append(Quiesce(self.up))

    def close(self) -> None:
        """What a supervisor does that takes the deployment out of service."""
        if self.up is not None:
            self.to_dispatch.append(Close(self.up))

    def work(self, choice: int) -> None:
        """A live run does one thing, as its own fold allows."""
        if self.child is None:
            return
        live = [run for run, followed in self.child.runs.items() if followed.live]
        if not live:
            return
        run = live[choice % len(live)]
        followed = self.child.runs[run]
        state = followed.state(run)
        by = WorkflowProcess(self.child.generation)
        if isinstance(state, fold.Ended | fold.Absent):
            return
        ledger, n = state.ledger, CallId(f"r1#{len(followed.events)}")
        seen = ledger.seq
        what: Any
        match choice % 7:
            case 0 | 1:
                events: tuple[ev.AnyEvent, ...] = (ev.SignalAwaited(call=n, park="input", seen=seen),)
                what = Append(by=by, run=run, events=events)
            case 2 if ledger.sent:
                request = min(ledger.sent)
                asks = ev.SignalAwaited(
                    call=n, park="approval", seen=seen, title="?", who=("boss@example.com",), request=request
                )
                what = Append(by=by, run=run, events=(asks,))
            case 2:
                what = QueueMail(by=by, run=run, call=n, to=("boss@example.com",), subject="?", text="?")
            case 3 if ledger.steps:
                call, step = next(iter(ledger.steps.items()))
                done = ev.StepCompleted(call=call, attempt=step.attempt, output=ev.Value(inline=b"1"))  # type: ignore[arg-type]  # bytes pass for Raw
                what = Append(by=by, run=run, events=(done,))
            case 3 | 4:
                what = Append(by=by, run=run, events=(ev.StepStarted(call=n, step="pay", arguments=HASH),))
            case 5:
                end: ev.AnyEvent = ev.RunCompleted(result=ev.Value(inline=b"1"))  # type: ignore[arg-type]  # as above
                what = Append(by=by, run=run, events=(end if ledger.cancel is None else ev.RunCancelled(),))
            case _ if ledger.waits:
                what = Append(by=by, run=run, events=(ev.SignalAwaitAbandoned(call=next(iter(ledger.waits))),))
            case _:
                return
        self.to_substrate.append((what, None))

    def operate(self, choice: int) -> None:
        """An operator pauses a run, lets it go on, or cancels it."""
        live = list(self.paper.live())
        if live:
            run = live[choice % len(live)]
            what: Any = Unpause(run=run, by="me") if choice % 2 else Pause(run=run, code="operator", detail="")
            if choice % 5 == 0:
                what = Cancel(run=run, reason="enough", origin="supervisor-operator", by="me")
            self.to_substrate.append((what, None))

    def credit(self, choice: int) -> None:
        """The child takes in a page."""
        if self.child is not None and self.child.runs:
            run = list(self.child.runs)[choice % len(self.child.runs)]
            if self.child.give_credit(run):
                self.to_dispatch.append(RunLogCredit(run=run))

    def some_rounds(self, rounds: int) -> None:
        """Serve everybody in turn; nothing becomes durable by itself."""
        for _ in range(rounds):
            self.serve_substrate()
            self.serve_dispatch()
            self.serve_answer()
            self.serve_child()

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way."""
        return not (self.to_dispatch or self.answers or self.to_substrate or self.to_child)

    def rest(self) -> None:
        """Serve everybody until nothing is on its way."""
        self.full = False
        for _ in range(10_000):
            if self.idle and self.wakes:  # nothing happens until somebody is woken
                self.wait(min(wake.mono or 0.0 for wake in self.wakes) - self.now.mono)
            self.wake()
            self.flush()
            for run in () if self.child is None else tuple(self.child.runs):
                while self.child is not None and self.child.give_credit(run):
                    self.to_dispatch.append(RunLogCredit(run=run))
            if self.idle and not self.wakes:
                return
            self.some_rounds(5)
        raise AssertionError("it never comes to rest")


def fold_ids(state: fold.Run) -> tuple[str, ...]:
    match state:
        case fold.Absent():
            return ()
        case fold.Ended():
            return (*state.sent, *state.received)
        case _:
            return (*state.ledger.sent, *state.ledger.received)


def play(world: World, seed: int, length: int) -> None:
    """Each action is one thing that happens, or a few messages served somewhere."""
    chance = Random(seed)
    serve = (world.serve_substrate, world.serve_dispatch, world.serve_answer, world.serve_child)
    for _ in range(length):
        kind, choice = chance.randrange(100), chance.randrange(10_000)
        if kind < 40:
            for _ in range(choice % 5 + 1):
                serve[kind % 4]()
        elif kind < 43:
            world.flush()
        elif kind < 52:
            world.some_rounds(choice % 40)
        elif kind < 60:
            world.mail(choice)
        elif kind < 86:
            world.work(choice)
        elif kind < 90:
            world.credit(choice)
        elif kind < 91:
            world.spawn(broken=choice % 5 == 0)
        elif kind < 92:
            world.kill(unexpected=choice % 2 == 0)
        elif kind < 94:
            world.operate(choice)
        elif kind < 95:
            world.drain() if choice % 2 else world.close()
        elif kind < 97:
            world.full = not world.full
        else:
            world.wake()


def at_rest(world: World) -> None:
    """What must hold once everything has been served."""
    paper, state = world.paper, world.dispatch
    assert isinstance(state, Open)
    assert all(count == 1 for count in world.taken.values()), "a mail was consumed twice"
    waning = isinstance(state.child, Waning)  # its end is the supervisor's: until then no time counts
    assert waning or not state.graces, "a cancelled run has time for ever"
    for run, known in paper.live().items():
        ledger = fold.ledger(known.run)
        assert waning or ledger is None or ledger.cancel is None, "it was cancelled, and goes on"
        card = state.cards.get(run)
        if card is not None or isinstance(known.run, fold.Driven):
            assert card is not None
            assert card.run == known.run
    if world.child is None or world.up is None:
        return
    if isinstance(state.child, Waning):
        assert world.told is not None
        driven = {run for run, had in world.child.runs.items() if isinstance(had.state(run), fold.Driven)}
        assert {each.run for each in world.told.runs} <= driven, "it waits for a run that the child doesn't drive"
        return
    broken = not hasattr(state.child, "ref")
    for item in paper.index.queue.values():
        entry = item.queued.entry
        assert not item.claimed, f"mail {entry.arrival} was left in processing"
        ledger = fold.ledger(paper.index.known(entry.run).run)
        standing = paper.index.standing(entry.run)
        if standing != "live":
            assert broken or world.up in world.closed, f"mail {entry.arrival} starts nothing"
        elif not isinstance(paper.index.known(entry.run).run, fold.Paused) and ledger is not None:
            assert accepting_wait(ledger, item.queued.gist) is None, f"mail {entry.arrival} waits beside an open wait"
    for run, known in paper.live().items():
        if not isinstance(known.run, fold.Driven):
            continue
        assert not broken, f"{run} is driven by broken code"
        followed = world.child.runs.get(run)
        assert followed is not None, "it waits behind somebody for ever"
        assert followed.live
        assert followed.state(run) == known.run, "the child has missed something"


def exits_add_up(run: RunId, log: list[ev.AnyEvent]) -> None:
    """Each exit counts by one, only while the run is driven; it is set aside after exactly its attempts, no earlier."""
    state: fold.Run = fold.Absent()
    count = 0
    for at, event in enumerate(log):
        before, state = state, fold.evolve(state, event, run_id=run)
        match event:
            case ev.RunInterrupted():
                assert isinstance(before, fold.Driven)
                count += 1
                steps = before.ledger.steps
                assert event.attempt == count
                after = log[at + 1 : at + 1 + max(1, len(steps))]
                failed = [each for each in after if isinstance(each, ev.StepFailed)]
                poison = [each for each in after if _set_aside(each)]
                assert len(failed) == (len(steps) if count == LIMITS.attempts else 0)
                assert bool(poison) == (count > LIMITS.attempts or (count == LIMITS.attempts and not steps))
            case ev.StepFailed():
                assert event.code == "child-crashed"
                assert count == LIMITS.attempts
            case ev.RunPaused(code="poison"):
                assert count >= LIMITS.attempts
            case ev.StepCompleted() | ev.RunUnpaused():
                count = 0
            case ev.RunResumed():
                assert event.attempt == count
            case _:
                pass
        count = 0 if isinstance(state, fold.Parked) else count


def _set_aside(event: ev.AnyEvent) -> bool:
    """A run that is being cancelled isn't set aside for somebody to look at: it ends."""
    match event:
        case ev.RunPaused(code="poison"):
            return True
        case ev.RunCancelled(code="past-grace", detail=detail):
            return detail.startswith("the process that ran it ended")  # its time, or an operator, may end it, too
        case _:
            return False


@given(seed=st.integers(0, 2**32), length=st.integers(10, 500), runs=st.sampled_from(["thread", "deployment"]))
@settings(max_examples=20)
def test_every_mail_is_taken_up_once_and_every_run_reaches_the_child(seed, length, runs):
    """Whatever is late, refused, withheld or killed: no mail twice, no gap, no run started twice, nothing stuck."""
    world = World(runs)
    world.serve_dispatch()
    world.spawn(broken=False)
    play(world, seed, length)
    world.rest()
    at_rest(world)
    world.spawn(broken=False)  # and again after one more child
    world.rest()
    at_rest(world)
    for run in world.paper.runs():
        exits_add_up(run, world.paper.log(run))


@given(seed=st.integers(0, 2**32), crashes=st.integers(1, 12))
@example(seed=6992, crashes=3)  # resumed with a count from before an operator let it go on
@settings(max_examples=15)
def test_exits_are_counted_against_those_that_were_driven_and_set_aside_exactly_them(seed, crashes):
    """Children end again and again, over whatever runs there are: nobody else is charged, and nobody is stuck."""
    world = World("thread")
    world.serve_dispatch()
    world.spawn(broken=False)
    chance = Random(seed)
    for _ in range(crashes):
        for _ in range(chance.randrange(4)):
            world.mail(chance.randrange(10_000))
        play(world, chance.randrange(2**32), chance.randrange(25))
        if chance.randrange(3):
            world.rest()
        for _ in range(chance.randrange(3)):
            world.work(7 * chance.randrange(1000) + 4)  # a step begins, and the child ends over it
        world.full = False
        world.spawn(broken=False)
    world.rest()
    at_rest(world)
    for run in world.paper.runs():
        exits_add_up(run, world.paper.log(run))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_a_dispatch_at_rest_asks_for_nothing_more(seed):
    """A refusal is not asked for again and again: with nothing new, there are no more requests."""
    world = World("thread")
    world.serve_dispatch()
    world.spawn(broken=False)
    play(world, seed, 200)
    world.rest()
    asked = world.requests
    world.to_dispatch.extend([Outcome(10**9, Done(0)), RunLogCredit(run="run_9_0000000000000000")])
    world.rest()
    assert world.requests == asked
