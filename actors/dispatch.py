"""DispatchActor: which mail goes to which run, and which run to the child, as ``actors.logic.dispatch`` decides."""

from actors.asking import AskingShell
from actors.logic.dispatch import Unopened, advance
from actors.logic.dispatch_turn import Desk
from actors.messages import DeploymentSpec, Role
from substrate.messages import Start
from waypost.acting import Clock, Ref
from waypost.model.limits import DEFAULT, Limits


class DispatchActor(AskingShell):
    """One deployment's dispatch. Its supervisor subscribes it to ``substrate``; its messages: ``DispatchMessage``."""

    def __init__(
        self,
        spec: DeploymentSpec,
        substrate: Ref,
        *,
        clock: Clock,
        parent: Ref | None = None,
        incarnation: int = 1,
        limits: Limits = DEFAULT,
    ) -> None:
        start = Start(
            definition=spec.definition,
            code=spec.code,
            python=spec.python,
            waypost=spec.waypost,
            distributions=spec.distributions,
            mail_to=spec.mail_to,
        )
        state = Unopened(Desk(start=start, limits=limits))
        super().__init__(
            f"{spec.name}/{Role.DISPATCH}", state, advance, clock=clock, parent=parent, incarnation=incarnation
        )
        self.substrate = substrate
