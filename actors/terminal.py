"""TerminalBroadcasterActor: shows watchers what is durable. The decision is in ``actors.logic.terminal``."""

from typing import Any

from actors.logic.terminal import Show, State, advance
from actors.messages import Role, Unwatch
from waypost.acting import Clock, Ref
from waypost.model.ids import Deployment
from waypost.shell import Shell, tell


class TerminalBroadcasterActor(Shell):
    """One deployment's broadcaster. Its supervisor subscribes it to the substrate; messages: ``BroadcasterMessage``."""

    def __init__(
        self, deployment: Deployment, *, clock: Clock, parent: Ref | None = None, incarnation: int = 1
    ) -> None:
        state = State(deployment=deployment)
        super().__init__(
            f"{deployment}/{Role.BROADCASTER}", state, advance, clock=clock, parent=parent, incarnation=incarnation
        )

    def perform(self, effect: Any) -> None:
        """Show a watcher something; one that is gone is forgotten."""
        match effect:
            case Show():
                if not tell(effect.watcher, effect.what):
                    tell(self.actor_ref, Unwatch(effect.run, effect.watcher))
            case _:
                super().perform(effect)
