"""SchedulerActor: fires what is due. The decision is in ``actors.logic.scheduler``; the clock's thread wakes it."""

from actors.asking import AskingShell
from actors.logic.scheduler import Unopened, advance
from actors.messages import Role
from waypost.acting import Clock, Ref
from waypost.model.ids import Deployment
from waypost.model.limits import DEFAULT, Limits


class SchedulerActor(AskingShell):
    """One deployment's timers. Its supervisor subscribes it to ``substrate``; its messages: ``SchedulerMessage``."""

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
