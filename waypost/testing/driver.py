"""The world around a host that keeps dying: senders, a boss and an operator who don't give up, and who starts it again.

``play`` runs a host as a process of its own, has every errand done until it was acknowledged, as a mail server would,
and starts the host again with the same command whenever it is dead, until every run has ended and all mail is out. What
it returns is what the outside knows: acknowledgements, and the lines of the timeline. Nothing here looks into the
repository.
"""

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from waypost.cli.client import Client, Said
from waypost.host.answers.records import Answer, EventsPage, Runs
from waypost.host.errors import NoHost, Unanswered
from waypost.model import events as ev
from waypost.testing.mortal import MortalHost, Place, Stuck, family_of
from waypost.testing.patience import PATIENCE
from waypost.testing.reaper import Reaper

_PULSE = 0.02
"""Seconds between two looks at the world when the host says nothing."""
_ENDED = {"completed", "failed"}


class Errand(Protocol):
    """What somebody outside wants of the host."""

    @property
    def name(self) -> str:
        """Whose errand it is; unique in a play."""
        ...

    def attempt(self, client: Client, place: Place, done: Mapping[str, Answer]) -> Answer | None:
        """Try once; the acknowledgement, or None when it isn't time yet. ``done``: acknowledged errands by name.

        May raise HostError: tried again.
        """
        ...


@dataclass(slots=True)
class Played:
    """What the outside knows after a play."""

    acknowledged: dict[str, Answer] = field(default_factory=dict)
    """By errand."""
    told: dict[str, float] = field(default_factory=dict)
    """By errand, when that came, by ``time.monotonic``."""
    refused: dict[str, str] = field(default_factory=dict)
    """What an errand was told last when it was refused, by errand; it may have been acknowledged later."""
    lines: list[list[str]] = field(default_factory=list)
    """What each life of the host printed."""
    heard: list[list[float]] = field(default_factory=list)
    """When each of these lines came."""
    lives: int = 0
    kills: int = 0

    def until(self, moment: float) -> "Played":
        """What the outside knew at a moment of ``time.monotonic``."""
        known = {name: answer for name, answer in self.acknowledged.items() if self.told[name] <= moment}
        lines = [
            [line for line, at in zip(*life, strict=False) if at <= moment]
            for life in zip(self.lines, self.heard, strict=True)
        ]
        heard = [[at for at in life if at <= moment] for life in self.heard]
        return Played(known, {name: self.told[name] for name in known}, lines=lines, heard=heard)


def play(
    place: Place,
    errands: Sequence[Errand],
    *,
    lives: Sequence[Sequence[str]] = (),
    reaper: Reaper | None = None,
    played: Played | None = None,
) -> Played:
    """Play until all is done, then stop the host. Raises Stuck.

    ``lives``: options of the host's first lives, in order; later ones have none. ``played``: what the outside knows
    already; who was acknowledged has no errand any more.
    """
    played = played or Played()
    options = iter(lives)
    host = MortalHost(place, next(options, ()))
    try:
        while True:
            played.lives += 1
            if reaper is not None:
                reaper.watch(host)
            if live(host, errands, played, time.monotonic() + PATIENCE):
                break
            host = MortalHost(place, next(options, ()))
        if reaper is not None:
            reaper.close()  # what comes now is the end, as asked for
        status = host.end()
        if status not in {0, -signal.SIGKILL}:
            raise Stuck(f"the host ended with status {status}")
    finally:
        if reaper is not None:
            reaper.close()
            played.kills = reaper.kills
        host.kill()
        host.end()
        played.lines.append(host.lines)
        played.heard.append(host.heard)
    _no_orphans(host)
    return played


def live(host: MortalHost, errands: Sequence[Errand], played: Played, until: float) -> bool:
    """One life of a host: do errands until all is done (True), or until it is dead (False). Raises Stuck."""
    client = Client(host.place.data / "host.sock")
    while host.alive:
        if time.monotonic() > until:
            undone = [errand.name for errand in errands if errand.name not in played.acknowledged]
            raise Stuck(
                f"not done in {PATIENCE:g} s; not acknowledged: {undone}; refused: {played.refused}; "
                f"the host's last words: {host.lines[-10:]}"
            )
        if host.ready:
            with suppress(NoHost, Unanswered):
                _run_errands(client, host.place, errands, played)
                if len(played.acknowledged) == len(errands) and _all_over(client):
                    return True
        host.hear(_PULSE)
    status = host.end()
    if status != -signal.SIGKILL:
        raise Stuck(f"the host ended by itself, with status {status}")
    played.lines.append(host.lines)
    played.heard.append(host.heard)
    _no_orphans(host)
    return False


def _run_errands(client: Client, place: Place, errands: Sequence[Errand], played: Played) -> None:
    for errand in errands:
        if errand.name not in played.acknowledged:
            try:
                answer = errand.attempt(client, place, played.acknowledged)
            except Said as said:
                played.refused[errand.name] = said.message
                continue
            if answer is not None:
                played.acknowledged[errand.name], played.told[errand.name] = answer, time.monotonic()


def _all_over(client: Client) -> bool:
    """Whether every run has ended and every mail that was queued is out."""
    rows = client.get(Runs, "runs").runs
    return bool(rows) and all(row.state in _ENDED for row in rows) and all(_all_sent(client, row.run) for row in rows)


def _all_sent(client: Client, run: str) -> bool:
    waiting: set[int] = set()
    after, last = 0, 1
    while after < last:
        page = client.get(EventsPage, "runs", run, "events", after=after)
        for raw in page.events:
            match ev.decode(bytes(raw)):
                case ev.MailQueued(ordinal=ordinal):
                    waiting.add(ordinal)
                case ev.MailSent(ordinal=int(ordinal)) | ev.MailFailed(ordinal=int(ordinal)):
                    waiting.discard(ordinal)
                case _:
                    pass
        after, last = after + len(page.events), page.last
    return not waiting


def _no_orphans(host: MortalHost) -> None:
    """A host that is dead leaves no child behind. Raises Stuck."""
    until = time.monotonic() + PATIENCE
    while left := family_of(host.pid):
        if time.monotonic() > until:
            raise Stuck(f"the host {host.pid} is dead, its children {left} live on")
        host.hear(_PULSE)
