"""SchedulerActor: fires what is due. The decision is in ``actors.logic.scheduler``; the clock's thread wakes it."""

import logging
from typing import Any

from actors.asking import AskingShell
from actors.logic.scheduler.decision import Unopened, advance
from actors.logic.scheduler.ticks import Warn
from actors.messages import Role
from waypost.acting import Clock, Ref
from waypost.model.ids import Deployment
from waypost.model.limits import DEFAULT, Limits

_log = logging.getLogger(__name__)


class SchedulerActor(AskingShell):
    """One deployment's timers and schedules; its messages: ``SchedulerMessage``.

    Its supervisor subscribes it to ``substrate``.
    """

    def __init__(
        self,
        deployment: Deployment,
        substrate: Ref,
        *,
        clock: Clock,
        parent: Ref | None = None,
        incarnation: int = 1,
        limits: Limits = DEFAULT,
    ) -> None:
        state = Unopened(limits)
        super().__init__(
            f"{deployment}/{Role.SCHEDULER}", state, advance, clock=clock, parent=parent, incarnation=incarnation
        )
        self.substrate = substrate

    def perform(self, effect: Any) -> None:
        """Say what somebody should know; the rest is every asker's."""
        match effect:
            case Warn(text):
                _log.warning("%s: %s", self.name, text)
            case _:
                super().perform(effect)
