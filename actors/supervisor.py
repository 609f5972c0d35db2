"""SupervisorActor: starts and ends a deployment's actors, as ``actors.logic.supervisor.decision`` decides.

What the decision names by role, this shell holds as refs. Should it fail itself, its whole crew has ended before its
own end is told: whoever starts another supervisor finds a repository that nobody else has open.
"""

import logging
from typing import assert_never

import pykka

from actors.logic.supervisor.books import Books, Setup
from actors.logic.supervisor.decision import advance
from actors.logic.supervisor.effects import (
    Announce,
    Attend,
    AttendAll,
    Dismiss,
    Effect,
    Enlist,
    EnlistOutsiders,
    Hire,
    Introduce,
    OpenRepository,
    Pass,
    TellChild,
    TellDispatch,
    Up,
)
from actors.logic.supervisor.states import WHOLE, Idle, State
from actors.messages import (
    Crew,
    DeploymentSpec,
    GenerationUp,
    Peers,
    Role,
    StateChanged,
    SupervisorMessage,
    Watch,
    WatchRun,
)
from actors.watching import ATTENDED, Asking
from substrate.messages import Open, Stage, Submit, Subscribe
from waypost.acting import Clock, Halt, Next, Ref, Reply, Tell, WakeAt
from waypost.model.ids import Generation
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.shell import Shell, tell

log = logging.getLogger(__name__)


class SupervisorActor(Shell):
    """One deployment. Asked: ``Forward`` (Result), ``Describe`` (Description), ``Stop`` (None, when all have ended).

    ``subscribers`` get the substrate's stream, too, each time it is opened. ``sink`` is told StateChanged.
    """

    def __init__(
        self,
        spec: DeploymentSpec,
        crew: Crew,
        *,
        clock: Clock,
        parent: Ref | None = None,
        sink: Ref | None = None,
        subscribers: tuple[Ref, ...] = (),
        limits: Limits = DEFAULT,
    ) -> None:
        self._setup = Setup(spec=spec, limits=limits)
        super().__init__(f"{spec.name}/supervisor", Idle(Books()), self._decide, clock=clock, parent=parent)
        self._crew, self._sink, self._subscribers = crew, sink, subscribers
        self._hired: dict[Role, Ref] = {}
        self._watchers: tuple[WatchRun, ...] = ()

    def _decide(self, state: State, message: SupervisorMessage, now: Now) -> Next[State]:
        return advance(self._setup, state, message, now)

    def perform(self, effect: Effect) -> None:  # noqa: C901, PLR0912 - one line per effect
        """Carry out one effect."""
        match effect:
            case Hire():
                self._hired[effect.role] = self._hire(effect.role, effect.incarnation)
            case Dismiss():
                self._hired[effect.role].stop(block=False)
            case OpenRepository():
                tell(self._hired[Role.SUBSTRATE], Open(reply_to=self.actor_ref, correlation=effect.correlation))
            case Pass():
                self._submit(effect)
            case Enlist():
                tell(self._hired[Role.SUBSTRATE], Subscribe(self._hired[effect.role]))
            case EnlistOutsiders():
                for subscriber in self._subscribers:
                    tell(self._hired[Role.SUBSTRATE], Subscribe(subscriber))
            case TellChild():
                tell(self._hired[Role.CHILD], effect.message)
            case TellDispatch():
                tell(self._hired[Role.DISPATCH], effect.message)
            case Up():
                up = GenerationUp(effect.generation, self._hired[Role.CHILD], effect.broken, effect.takes)
                tell(self._hired[Role.DISPATCH], up)
            case Introduce():
                tell(self._hired[Role.CHILD], self._peers())
            case Attend():
                self._attend(effect.watch)
            case AttendAll():
                self._attend_all()
            case Announce():
                tell(self._sink, StateChanged(effect.description))
            case Reply() | Tell() | WakeAt() | Halt():
                raise AssertionError("the shell's own")
            case _:
                assert_never(effect)

    def _hire(self, role: Role, incarnation: int) -> Ref:
        crew, me = self._crew, self.actor_ref
        match role:
            case Role.SUBSTRATE:
                return crew.substrate(me, incarnation)
            case Role.BROADCASTER:
                return crew.broadcaster(me, incarnation)
            case Role.DISPATCH:
                return crew.dispatch(me, incarnation, self._hired[Role.SUBSTRATE])
            case Role.SCHEDULER:
                return crew.scheduler(me, incarnation, self._hired[Role.SUBSTRATE])
            case Role.CHILD:
                return crew.child(me, Generation(incarnation), self._peers())
            case _:
                assert_never(role)

    def _peers(self) -> Peers:
        hired = self._hired
        return Peers(hired[Role.SUBSTRATE], hired[Role.DISPATCH], hired[Role.BROADCASTER])

    def _submit(self, effect: Pass) -> None:
        submit = Submit(what=effect.what, stage=Stage.DURABLE, reply_to=self.actor_ref, correlation=effect.correlation)
        tell(self._hired[Role.SUBSTRATE], submit)

    def _attend(self, watch: WatchRun) -> None:
        # Forgotten with the watcher: whoever looks at a run for a moment leaves nothing behind.
        self._watchers = (*(known for known in self._watchers if known.watcher.is_alive() and known != watch), watch)
        broadcaster = self._hired.get(Role.BROADCASTER)
        tell(broadcaster, Watch(watch.run, watch.watcher))
        if watch.run in ATTENDED and broadcaster is not None:
            # After the watch: an event that is too early to be told is old enough to be found.
            tell(watch.watcher, Asking(self._setup.spec.name, self._setup.spec.address, self.actor_ref))

    def _attend_all(self) -> None:
        for watch in self._watchers:
            self._attend(watch)

    def finish(self) -> None:
        """End the crew, youngest first. Nothing is left to end unless this actor failed or was stopped at once."""
        for role in reversed(WHOLE):
            ref = self._hired.get(role)
            if ref is None:
                continue
            try:
                ref.stop(block=True, timeout=self._setup.limits.stop_deadline)
            except pykka.Timeout:
                log.error(  # noqa: TRY400 - the traceback is pykka's waiting
                    "%s: the %s failed to end within %g s", self.name, role, self._setup.limits.stop_deadline
                )
