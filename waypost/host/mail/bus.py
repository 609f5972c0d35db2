"""MailBusActor: the one door for mail of this host, and the way out of it."""

import logging
import os
from pathlib import Path
from typing import Any

from actors.messages import Forward
from substrate.messages import Done, Outcome, Withheld
from waypost.host.datadir.directory import DataDir
from waypost.host.mail import maildir, spool
from waypost.host.mail.bus_logic import advance
from waypost.host.mail.bus_states import (
    Bus,
    Complain,
    Discard,
    GiveBack,
    Hand,
    LookIntoSpools,
    SetAside,
    Shelve,
    State,
    Unrouted,
    Wake,
)
from waypost.host.mail.spool import Spooled
from waypost.host.messages import BusMessage, Rouse, Shelved, SpoolFound
from waypost.host.worker import Worker
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.observing import NOBODY, Enqueued, Observer
from waypost.shell import Clock, Next, Ref, Shell, tell

log = logging.getLogger(__name__)

_AT_ONCE = 16
"""Mails that are read from one spool at a look; the rest waits for the next."""
_HANDED = 1024
"""Mails on their way into a repository, from which on those that no longer are so are forgotten."""


class MailBusActor(Shell):
    """Address to deployment; the durable answer at the door; outgoing delivery. Its disk work has a thread."""

    def __init__(
        self,
        data: DataDir,
        *,
        limits: Limits,
        clock: Clock,
        parent: Ref | None = None,
        incarnation: int = 1,
        observer: Observer = NOBODY,
    ) -> None:
        super().__init__(
            "mail-bus", Unrouted(limits), self._decide, clock=clock, parent=parent, incarnation=incarnation
        )
        self._data, self._limits = data, limits
        self._worker: Worker | None = None
        self._observer, self._handed = observer, dict[int, float]()

    def _decide(self, state: State, message: BusMessage, now: Now) -> Next[State]:
        if isinstance(message, Outcome) and isinstance(state, Bus):
            self._accepted(state, message, now)
        return advance(state, message, now)

    def _hand_over(self, correlation: int) -> None:
        open_ = self._state.open if isinstance(self._state, Bus) else {}
        if len(self._handed) > _HANDED:  # whose repository was made anew meanwhile, and whose answer never came
            self._handed = {each: since for each, since in self._handed.items() if each in open_}
        self._handed[correlation] = self._clock.now().mono

    def _accepted(self, bus: Bus, message: Outcome, now: Now) -> None:
        """Mark how long the door took; the answer of a repository to a mail comes once."""
        since, open_ = self._handed.pop(message.correlation, None), bus.open.get(message.correlation)
        route = None if open_ is None else open_.route
        if since is not None and route is not None and isinstance(message.result, Done):
            self._observer.mark(Enqueued(route.name, now.mono - since))

    def perform(self, effect: Any) -> None:
        """Hand over to a supervisor, or have the worker touch the disk."""
        match effect:
            case Hand():
                self._hand_over(effect.correlation)
                forward = Forward(effect.what, reply_to=self.actor_ref, correlation=effect.correlation)
                if not tell(effect.supervisor, forward):
                    gone = Withheld("the deployment is being made anew")
                    tell(self.actor_ref, Outcome(effect.correlation, gone))
            case Wake():
                tell(self._parent, Rouse(effect.name))
            case GiveBack():
                much = Withheld("too much waits for the deployment already, which is being woken; try again")
                tell(self.actor_ref, Outcome(effect.correlation, much))
            case Shelve():
                self._work().do(lambda: _shelve(self._data.out, effect))
            case LookIntoSpools():
                self._work().do(lambda: _look(self._data, effect.names, self._limits.mail, self._clock.now().wall))
            case Discard():
                self._work().do(lambda: _discard(effect))
            case SetAside():
                self._work().do(lambda: _set_aside(effect))
            case Complain():
                log.warning("spool: %s", effect.fault)
            case _:
                super().perform(effect)

    def finish(self) -> None:
        """The worker ends after what it has."""
        if self._worker is not None:
            self._worker.close()

    def _work(self) -> Worker:
        # Made at the first need: construction may not act.
        if self._worker is None:
            self._worker = Worker("mail-bus-disk", self.actor_ref)
        return self._worker


def _shelve(out: Path, effect: Shelve) -> Shelved:
    try:
        maildir.deliver(out, effect.key, effect.message, again=effect.again)
    except OSError as failure:
        return Shelved(effect.correlation, f"{out}: {failure.strerror or failure}")
    return Shelved(effect.correlation)


def _look(data: DataDir, names: tuple[str, ...], limit: int, wall: int) -> SpoolFound:
    """Read the oldest mails of each spool; what can't be read stays, is named, and holds up nothing behind it."""
    found: list[tuple[Spooled, bytes]] = []
    faults: list[str] = []
    there = _folders(data.spool(""), faults)
    for name in names:
        if name not in there:
            continue  # nothing was ever left for it: with thousands, looking into each would cost all the time
        try:
            spool.tidy(data.spool(name), wall / 1000)
            waiting = spool.waiting(data.spool(name), name)
        except OSError as failure:
            faults.append(f"{data.spool(name)}: {failure.strerror or failure}")
            continue
        most = len(found) + _AT_ONCE
        for mail in waiting:
            if len(found) == most:
                break
            try:
                raw = spool.read(mail, limit + 1)  # one over: the door sees that it is too large
                if raw is None:
                    _set_aside(SetAside(mail, "not a mail: no plain file"))
                else:
                    found.append((mail, raw))
            except OSError as failure:
                faults.append(f"{mail.path}: {failure.strerror or failure}")
    found.sort(key=lambda each: each[0].path.name)  # by the time at which they were left, whomever they are for
    return SpoolFound(tuple(found), tuple(faults))


def _folders(parent: Path, faults: list[str]) -> frozenset[str]:
    try:
        return frozenset(entry.name for entry in os.scandir(parent))
    except FileNotFoundError:
        return frozenset()
    except OSError as failure:
        faults.append(f"{parent}: {failure.strerror or failure}")
        return frozenset()


def _discard(effect: Discard) -> None:
    try:
        spool.remove(effect.mail)
    except OSError as failure:
        log.warning("%s is enqueued and stays in new/: %s", effect.mail.path, failure)


def _set_aside(effect: SetAside) -> None:
    log.warning("%s is set aside: %s", effect.mail.path, effect.reason)
    try:
        spool.set_aside(effect.mail, effect.reason)
    except OSError as failure:
        log.warning("%s stays in new/: %s", effect.mail.path, failure)
