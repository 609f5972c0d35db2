"""DispatchActor: which mail goes to which run, and which run to the child, as ``actors.logic.dispatch`` decides."""

import logging

from actors.asking import AskingShell
from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.marks import Around, Marks, watch
from actors.logic.dispatch.state import Open, State, Unopened
from actors.logic.dispatch.turn import Setup
from actors.messages import DeploymentSpec, DispatchMessage, Role
from actors.starting import start_of
from waypost.acting import Clock, Next, Ref
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.observing import NOBODY, Observer

log = logging.getLogger(__name__)


class DispatchActor(AskingShell):
    """One deployment's dispatch. Its supervisor subscribes it to ``substrate``; its messages: ``DispatchMessage``.

    ``observer`` is told how long each mail's way took; should the watching fail, it ends, and dispatch goes on.
    ``keeper`` is asked for the credentials that the steps may read.
    """

    def __init__(
        self,
        spec: DeploymentSpec,
        substrate: Ref,
        *,
        clock: Clock,
        parent: Ref | None = None,
        incarnation: int = 1,
        limits: Limits = DEFAULT,
        observer: Observer = NOBODY,
        keeper: Ref | None = None,
    ) -> None:
        state = Unopened(Setup(start=start_of(spec), limits=limits, steps=spec.steps, keeper=keeper is not None))
        super().__init__(
            f"{spec.name}/{Role.DISPATCH}", state, self._decide, clock=clock, parent=parent, incarnation=incarnation
        )
        self.substrate, self.deployment, self.keeper = substrate, spec.name, keeper
        self._deployment, self._observer, self._marks = spec.name, observer, Marks()

    def _decide(self, state: State, message: DispatchMessage, now: Now) -> Next[State]:
        following = advance(state, message, now)
        if self._observer is not NOBODY:
            self._watch(following, message, now)
        return following

    def _watch(self, following: Next[State], message: DispatchMessage, now: Now) -> None:
        state = following.state
        mails, runs = (len(state.homes), len(state.cards)) if isinstance(state, Open) else (0, 0)
        try:
            around = Around(self._deployment, mails, runs)
            self._marks, timed = watch(self._marks, message, following.effects, now.mono, around)
            for mark in timed:
                self._observer.mark(mark)
        except Exception:
            log.exception("%s: nobody observes it any more", self.name)
            self._observer = NOBODY
