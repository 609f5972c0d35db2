"""The world around a host that keeps dying: senders, a boss and an operator who don't give up, and who starts it again.

``play`` runs a host as a process of its own, has every errand done until it was acknowledged, as a mail server would,
and starts the host again with the same command whenever it is dead, until every run has ended and all mail is out. What
it returns is what the outside knows: acknowledgements, and the lines of the timeline. Nothing here looks into the
repository.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from waypost.cli.client import Client, Said
from waypost.host.answers import Answer, EventsPage, Runs
from waypost.host.errors import NoHost, Unanswered
from waypost.model import events as ev
from waypost.testing.host import READY

LIMITS = '{"backoff_first": 0.02, "backoff_cap": 0.02, "retry_first": 0.02, "retry_cap": 0.02, "seal_objects": 100}'
"""Short waits; and a journal becomes a pack every ten flushes or so, so that kills and cuts meet that, too."""
PATIENCE = 90.0
"""Seconds until a play that doesn't end has failed."""
_PULSE = 0.02
"""Seconds between two looks at the world when the host says nothing."""
_ENDED = {"completed", "failed"}


class Stuck(AssertionError):
    """The host didn't get done in time, or did what no host may do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one host lives: its data directory, the workflow's file, its environment, what was said on stderr."""

    data: Path
    file: Path
    environment: Mapping[str, str] = field(repr=False)
    complaints: Path

    @property
    def outgoing(self) -> Path:
        """Mail that the host has delivered."""
        return self.data / "out" / "new"


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


class MortalHost:
    """``python -m waypost.testing.host`` at a place, and a thread that reads what it prints."""

    def __init__(self, place: Place, options: Sequence[str] = ()) -> None:
        command = [sys.executable, "-m", "waypost.testing.host", str(place.file), "--data", str(place.data)]
        self.place = place
        self.lines: list[str] = []
        """Whole lines so far, in order; complete once the process has ended and ``close`` was called."""
        self._news: SimpleQueue[str] = SimpleQueue()
        self._complaints = place.complaints.open("ab")
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [*command, "--print", "--limits", LIMITS, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=dict(place.environment),
        )
        self._reader = threading.Thread(target=self._read, name="host-lines", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it has said so."""
        return READY in self.lines

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def hear(self, seconds: float) -> None:
        """Wait until it says something, at most this long."""
        with suppress(Empty):
            self._news.get(timeout=seconds)

    def kill(self) -> None:
        """End it by kill -9."""
        self._process.kill()

    def end(self, seconds: float = PATIENCE) -> int:
        """Have it end as an operator would, unless it is dead already; its exit status. Raises Stuck."""
        if self.alive:
            self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise Stuck(f"the host did not stop within {seconds:g} s") from None
        finally:
            self.close()
        return status

    def close(self) -> None:
        """Take in its last lines; to be called when it is dead."""
        self._reader.join(PATIENCE)
        self._complaints.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            for raw in pipe:
                if raw.endswith(b"\n"):
                    line = raw[:-1].decode("utf-8", "backslashreplace")
                    self.lines.append(line)
                    self._news.put(line)


def family_of(host: int) -> tuple[int, ...]:
    """Every process that the host of this pid has started, whoever its parent is by now."""
    return tuple(pid for pid, _ in _family(host))


def workers_of(host: int) -> tuple[int, ...]:
    """Of these, those that run workflows: not those that only say what a file declares."""
    return tuple(pid for pid, words in _family(host) if not any(word.startswith(b"--describe") for word in words))


def _family(host: int) -> Iterator[tuple[int, list[bytes]]]:
    mark = [b"waypost.child", b"--parent", str(host).encode()]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # gone meanwhile
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if any(words[at : at + 3] == mark for at in range(len(words))):
                    yield int(entry.name), words


# --- kills ---------------------------------------------------------------------------------------------------------

Kill = Callable[[MortalHost], bool]
"""Kills something of a host; whether there was something to kill."""


def kill_host(host: MortalHost) -> bool:
    """Do kill -9 of the host, wherever it is in its life."""
    if not host.alive:
        return False
    host.kill()
    return True


def kill_child(host: MortalHost) -> bool:
    """Do kill -9 of the present child."""
    killed = False
    for pid in workers_of(host.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed = True
    return killed


class Reaper:
    """Kills at random moments of a play, in a thread of its own: also while somebody waits for an answer."""

    def __init__(self, kill: Kill, pauses: Iterable[float]) -> None:
        self.kills = 0
        self._kill, self._pauses = kill, tuple(pauses)
        self._host: MortalHost | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="reaper", daemon=True)

    @classmethod
    def seeded(cls, kill: Kill, seed: int, *, kills: int, span: float) -> "Reaper":
        """That many kills, each up to ``span`` seconds after the one before; the seed says when."""
        random_ = random.Random(seed)  # noqa: S311 - to be repeatable, not secret
        return cls(kill, [random_.uniform(0.0, span) for _ in range(kills)])

    def watch(self, host: MortalHost) -> None:
        """From now on this is the host; the first call begins the reaper's time."""
        self._host = host
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """Kill nothing any more."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)

    def _work(self) -> None:
        for pause in self._pauses:
            if self._over.wait(pause):
                return
            while self._host is None or not self._kill(self._host):
                if self._over.wait(0.002):  # nobody there at this moment: the next one is as good
                    return
            self.kills += 1


# --- a play --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Played:
    """What the outside knows after a play."""

    acknowledged: dict[str, Answer] = field(default_factory=dict)
    """By errand."""
    refused: dict[str, str] = field(default_factory=dict)
    """What an errand was told last when it was refused, by errand; it may have been acknowledged later."""
    lines: list[list[str]] = field(default_factory=list)
    """What each life of the host printed."""
    lives: int = 0
    kills: int = 0


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
    until = time.monotonic() + PATIENCE
    options = iter(lives)
    host = MortalHost(place, next(options, ()))
    try:
        while True:
            played.lives += 1
            if reaper is not None:
                reaper.watch(host)
            if live(host, errands, played, until):
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
                played.acknowledged[errand.name] = answer


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
