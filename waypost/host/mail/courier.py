"""CourierActor: one for each deployment, subscribed to its substrate's stream; empties the outbox."""

import logging
from typing import Any

from actors.messages import Forward
from substrate.messages import MailDelivered, MailUndeliverable
from waypost.host.mail.courier_logic import Idle, Record, TakeOut, Tidings, Warn, advance
from waypost.host.messages import Carry, OutboxStuck
from waypost.model.ids import Deployment
from waypost.model.limits import Limits
from waypost.shell import Clock, Ref, Shell, tell

log = logging.getLogger(__name__)

COURIER = "courier"


class CourierActor(Shell):
    """Takes what is durable in one outbox to the bus, and has its fate recorded."""

    def __init__(
        self, deployment: Deployment, *, limits: Limits, clock: Clock, parent: Ref | None = None, incarnation: int = 1
    ) -> None:
        super().__init__(
            f"{deployment}/{COURIER}", Idle(limits), advance, clock=clock, parent=parent, incarnation=incarnation
        )
        self._deployment = deployment

    def perform(self, effect: Any) -> None:
        """Hand over, record, or ask for a wake-up."""
        match effect:
            case TakeOut():
                carry = Carry(
                    deployment=self._deployment,
                    outgoing=effect.mail.outgoing,
                    message=effect.mail.message,
                    courier=self.actor_ref,
                    again=effect.again,
                )
                tell(effect.bus, carry)
            case Record(operation=MailDelivered() | MailUndeliverable() as operation):
                tell(effect.supervisor, Forward(operation, reply_to=self.actor_ref, correlation=operation.ordinal))
            case Tidings(stuck):
                tell(self._parent, OutboxStuck(self._deployment, self.incarnation, stuck))
            case Warn(ordinal, why):
                log.warning(
                    "%s: outgoing mail %d can't leave, and is tried again and again: %s", self._deployment, ordinal, why
                )
            case _:
                super().perform(effect)
