"""KeeperActor: the credentials of a host's deployments, in memory and nowhere else, as ``logic`` decides."""

import logging
import threading
from functools import partial
from pathlib import Path
from typing import Any

from actors.credentials import DeliverCredentials, DeliverSources
from substrate.messages import Done, Outcome
from waypost.host.credentials import providers
from waypost.host.credentials.errors import BadCredentials
from waypost.host.credentials.file import Configured, read
from waypost.host.credentials.logic import advance
from waypost.host.credentials.messages import FileRead, LoadFile, Read, Supply, Warn, WasRead
from waypost.host.credentials.states import Keeper
from waypost.shell import Clock, Ref, Shell, tell

log = logging.getLogger(__name__)
NAME = "keeper"


class KeeperActor(Shell):
    """One for a host. Told ``AssembleCredentials``; asked ``ListCredentials``, ``TryCredentials`` and ``Reload``.

    ``path``: of ``credentials.toml``, which said ``configured`` at the start; ``around``: what reading depends on.
    """

    def __init__(
        self,
        path: Path,
        configured: Configured,
        around: providers.Surroundings,
        *,
        clock: Clock,
        parent: Ref | None = None,
        incarnation: int = 1,
    ) -> None:
        state = Keeper(configured=configured)
        super().__init__(NAME, state, advance, clock=clock, parent=parent, incarnation=incarnation)
        self._path, self._around = path, around

    def perform(self, effect: Any) -> None:
        """Have a thread read something, tell a supervisor, say something in the log."""
        match effect:
            case Read():
                # A thread for each, and none while nothing is read: one may wait for a command for seconds.
                work = partial(_read, self.actor_ref, effect, self._around)
                threading.Thread(target=work, name="waypost-credential", daemon=True).start()
            case LoadFile():
                work = partial(_load, self.actor_ref, self._path)
                threading.Thread(target=work, name="waypost-credential", daemon=True).start()
            case Supply():
                self._supply(effect)
            case Warn():
                log.warning("%s", effect.text)
            case _:
                super().perform(effect)

    def _supply(self, effect: Supply) -> None:
        if effect.sources is not None:
            tell(effect.supervisor, DeliverSources(effect.sources))
        if not tell(effect.supervisor, DeliverCredentials(effect.credentials, self.actor_ref, effect.correlation)):
            # It has fallen asleep, or is being made anew: its next process asks for what holds then.
            tell(self.actor_ref, Outcome(effect.correlation, Done(0, value=False)))


def _read(keeper: Ref, effect: Read, around: providers.Surroundings) -> None:
    try:
        reading: providers.Reading = providers.read(effect.credential.way, around)
    except Exception as failure:  # noqa: BLE001 - who waits for it must be answered; its words may hold the value
        reading = providers.Failed(f"reading it failed ({type(failure).__name__})")
    tell(keeper, WasRead(effect.correlation, reading))


def _load(keeper: Ref, path: Path) -> None:
    try:
        found: Configured | BadCredentials = read(path)
    except BadCredentials as bad:
        found = bad
    tell(keeper, FileRead(found))
