"""A shell for decisions that ask the substrate and the clock and report to their supervisor."""

from typing import Any

from actors.credentials import AssembleCredentials
from actors.effects import Ask, ToKeeper, ToSupervisor
from substrate.messages import Submit
from waypost.acting import Ref
from waypost.model.ids import Deployment
from waypost.shell import Shell, tell


class AskingShell(Shell):
    """Carries out ``Ask``, ``WakeAt`` and ``ToSupervisor``; answers and wake-ups come to this actor as messages."""

    substrate: Ref
    """Whom it asks. A substrate that has gone answers nothing: the parent ends this actor, too."""
    deployment: Deployment
    """On whose behalf."""
    keeper: Ref | None = None
    """Who keeps credentials, where somebody does."""

    def perform(self, effect: Any) -> None:
        """Hand an operation or a question to the substrate, a wish to be woken to the clock, a report to the parent."""
        match effect:
            case Ask():
                submit = Submit(
                    what=effect.what, stage=effect.stage, reply_to=self.actor_ref, correlation=effect.correlation
                )
                tell(self.substrate, submit)
            case ToSupervisor():
                tell(self._parent, effect.message)
            case ToKeeper() if self.keeper is not None:
                wanted = AssembleCredentials(
                    correlation=effect.correlation,
                    deployment=self.deployment,
                    bindings=effect.bindings,
                    reply_to=self.actor_ref,
                    supervisor=self._parent,
                )
                tell(self.keeper, wanted)
            case _:
                super().perform(effect)
