"""Root, bus and supervisors, whose messages cross in every order: each mail reaches one of them, and none is lost."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from actors.draining import Depart, GiveWay, GoAhead, Line
from actors.messages import Forward, Start, StateChanged, WatchRun
from substrate.messages import Accepted, Done, Enqueue, Outcome, Ref
from waypost.acting import ActorEnded, Asked, Reply, Tell
from waypost.host.described import Sleep
from waypost.host.mail import bus_logic as mailbus_logic
from waypost.host.mail.bus_states import Hand, LookIntoSpools, Unrouted, Wake
from waypost.host.messages import Begin, BusStarted, Deliver, DeploymentStarted, Rouse, Serve, SpoolFound
from waypost.host.root import logic as root_logic
from waypost.host.root.redeploying import described
from waypost.host.root.sleep import deployed
from waypost.host.root.slots import HOST, ONE
from waypost.host.root.states import Dismiss, Forget, Note, Report, Running, Setup, StartBus, StartDeployment
from waypost.host.root.states import Idle as RootIdle
from waypost.model.ids import Deployment, Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing import sayings
from waypost.testing.supervision import a_spec

ROOT, BUS = (cast(Ref, name) for name in ("root", "bus"))
NAMES = tuple(Deployment(name) for name in ("a", "b", "c"))
SPECS = tuple(a_spec(name) for name in NAMES)
LIMITS = Limits(threads=HOST + 2 * ONE)
RAW = b"From: ann@example.com\r\nMessage-ID: <%d@x>\r\n\r\nhello\r\n"


@dataclass
class Supervisor:
    """One that is awake or asleep, and knows nothing of a host; ``inbox`` is what was told it and isn't heard yet."""

    name: Deployment
    incarnation: int
    inbox: deque[Any]
    state: str = "idle"
    line: Line = ""
    gone: bool = False


class World:
    """The two real decisions, and supervisors that sleep when chance wants it; every mailbox is a queue."""

    def __init__(self, sleeping: frozenset[Deployment]) -> None:
        self.root: Any = RootIdle()
        self.bus: Any = Unrouted(LIMITS)
        self.to_root, self.to_bus = deque[Any](), deque[Any]()
        self.supervisors: dict[str, Supervisor] = {}
        self.answered: list[int] = []
        self.heard: dict[Deployment, list[bytes]] = {name: [] for name in NAMES}
        self.now = Now(wall=1_000_000, mono=50.0)
        self.wakes: list[Any] = []
        self.most = 0
        self.joined: list[Deployment] = []
        """Who has come into the line, in order; and who has taken up mail in its turn."""
        self.took_up: list[Deployment] = []
        self.to_root.append(Begin(SPECS, dict.fromkeys(sleeping, Sleep(None))))

    def root_turn(self) -> None:
        """The root takes one message."""
        before = self.root.dormancy.line.row if isinstance(self.root, Running) else ()
        following = root_logic.advance(Setup(LIMITS), self.root, self.to_root.popleft(), self.now)
        self.root = following.state
        for effect in following.effects:
            match effect:
                case StartBus():
                    self.to_root.append(BusStarted(effect.incarnation, BUS))
                case StartDeployment():
                    name = effect.spec.name
                    assert all(each.gone for each in self.supervisors.values() if each.name == name), "two at once"
                    key = f"{name} {effect.incarnation}"
                    self.supervisors[key] = Supervisor(name, effect.incarnation, deque())
                    ref, courier = cast(Ref, key), cast(Ref, f"courier {key}")
                    self.to_root.append(DeploymentStarted(name, effect.incarnation, ref, courier))
                case Tell():
                    self.tell(effect.ref, effect.message)
                case Dismiss() | Report() | Note() | Forget():
                    pass
                case _ if hasattr(effect, "mono"):
                    self.wakes.append(effect)
                case _:
                    raise AssertionError(effect)
        for member in getattr(self.root, "members", {}).values():
            sayings.check(deployed(member).description.why)
        if isinstance(self.root, Running):
            self.joined += [name for name in self.root.dormancy.line.row if name not in before]
            self.most = max(self.most, len(self.root.dormancy.slots.awake) - self.root.dormancy.slots.extra)

    def bus_turn(self) -> None:
        """The bus takes one message."""
        following = mailbus_logic.advance(self.bus, self.to_bus.popleft(), self.now)
        self.bus = following.state
        for effect in following.effects:
            match effect:
                case Hand():
                    self.tell(effect.supervisor, Forward(effect.what, BUS, effect.correlation))
                case Wake():
                    self.to_root.append(Rouse(effect.name))
                case Tell():
                    self.tell(effect.ref, effect.message)
                case Reply():
                    assert not isinstance(effect.value, Exception), effect.value
                    self.answered.append(effect.token)
                case LookIntoSpools():
                    self.to_bus.append(SpoolFound(()))
                case _:
                    pass  # when it looks again

    def tell(self, ref: Any, message: Any) -> None:
        """Put it into a mailbox; who is gone hears nothing, and that must not happen to a mail."""
        if ref == BUS:
            self.to_bus.append(message)
        elif ref == ROOT:
            self.to_root.append(message)
        elif ref in self.supervisors:
            assert not (self.supervisors[ref].gone and isinstance(message, Forward)), "a mail to nobody"
            self.supervisors[ref].inbox.append(message)

    def supervisor_turn(self, key: str) -> None:
        """A supervisor takes one message."""
        one = self.supervisors[key]
        match one.inbox.popleft():
            case Start() as start:
                called, one.line = one.line == "called", start.line
                self.says(one, "running")
                if called:
                    self.takes_up(one)
            case GoAhead() if one.state == "idle":
                one.line = "called"
            case GoAhead() if one.line:
                self.takes_up(one)
            case GoAhead():
                pass
            case Forward() as forward:
                if one.state == "dormant":
                    self.says(one, "starting")
                assert isinstance(forward.what, Enqueue)
                self.heard[one.name].append(forward.what.raw)
                taken = Accepted("enqueued", RunId("run_1_0000000000000000"), 1, "inbox")
                self.to_bus.append(Outcome(forward.correlation, Done(1, taken)))
            case Depart() if one.state == "dormant":
                assert not any(isinstance(each, Forward) for each in one.inbox), "a mail behind the word to go"
                one.gone = True
                self.to_root.append(ActorEnded(f"{one.name}/supervisor", 1, None))
            case Depart() | GiveWay() | WatchRun() | Serve():
                pass
            case other:
                raise AssertionError(other)

    def takes_up(self, one: Supervisor) -> None:
        """It is its turn."""
        self.took_up.append(one.name)
        one.line = ""
        self.says(one, one.state)

    def says(self, one: Supervisor, state: str) -> None:
        """It has another state, and tells the root."""
        one.state = state
        shown = described(a_spec(one.name), state, "")
        self.to_root.append(StateChanged(replace(shown, generation=Generation(1), line=one.line)))

    def step(self, choice: int) -> bool:
        """One turn of somebody who has something to do; whether there was one."""
        turns: list[Any] = []
        if self.to_root:
            turns.append(self.root_turn)
        if self.to_bus:
            turns.append(self.bus_turn)
        turns += [
            lambda key=key: self.supervisor_turn(key)
            for key, each in self.supervisors.items()
            if each.inbox and not each.gone
        ]
        if not turns:
            return False
        turns[choice % len(turns)]()
        return True

    def sleeps(self, number: int) -> None:
        """Somebody who is awake falls asleep."""
        present = (each for each in self.supervisors.values() if not each.gone and not each.line)
        awake = [each for each in present if each.state in {"running", "starting"}]
        if awake:
            self.says(awake[number % len(awake)], "dormant")


ACTS = st.lists(st.tuples(st.sampled_from([*["step"] * 6, *["mail"] * 2, "sleep"]), st.integers(0, 11)), max_size=70)


@given(ACTS, st.frozensets(st.sampled_from(NAMES)))
def test_every_mail_is_heard_once_in_order_whoever_sleeps_meanwhile(
    acts: list[tuple[str, int]], sleeping: frozenset[Deployment]
) -> None:
    """Never two supervisors of one deployment; never more awake than there is room for, unless all are at work."""
    world = World(sleeping)
    sent: dict[Deployment, list[bytes]] = {name: [] for name in NAMES}
    token = 0
    for what, number in acts:
        match what:
            case "mail":
                token += 1
                name, raw = NAMES[number % len(NAMES)], RAW % token
                sent[name].append(raw)
                world.to_bus.append(Asked(token, Deliver(f"{name}@example.com", raw)))
            case "sleep":
                world.sleeps(number)
            case _:
                world.step(number)
    for _ in range(10_000):
        if not world.step(0):
            if len(world.answered) == token:
                break
            # Whoever is awake and was asked to give way has come to rest by now.
            world.sleeps(0)
    assert sorted(world.answered) == list(range(1, token + 1))
    assert world.heard == sent
    assert not world.root.dormancy.line.row, "somebody is waited for who has nothing to wait for"
    joined = iter(world.joined)
    assert all(name in joined for name in world.took_up), "taken up in another order than it came"
    assert world.most <= 2
