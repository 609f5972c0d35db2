"""``waypost tail``: events as they become durable, of one run to its end, or of everything from now on.

Of a run nothing is missed and nothing told twice: when its host ends, what is left is read from the disk, and the last
words say how to go on from there.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from waypost.cli import words
from waypost.cli.client import Client
from waypost.cli.fitting import laid_out
from waypost.cli.output import err, out
from waypost.cli.place import existing, run_named
from waypost.cli.reading import page_of
from waypost.host.answers.records import EventsPage
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import HostError, NoHost, Unanswered
from waypost.host.exits import Exit
from waypost.host.reading.narrate import Narrator
from waypost.model import events as ev

_PRIMED = 4096
"""Events of a run that began before, up to which they are read so that its steps have their names."""
_TAIL = 4
"""Digits of a run's random part that a line has room for; enough to be typed as a prefix."""
_INDENT = 10


class HostGone(HostError):
    """There is nobody (any more) who tells what happens; ``go_on``: what to do after another one was started."""

    code = "no-host"

    def __init__(self, where: str, why: str, go_on: str) -> None:
        super().__init__(f"{where}: {why}", hint=f"start it with `waypost run`, then {go_on}")


class _In(msgspec.Struct, frozen=True):
    deployment: str = ""
    run: str = ""
    event: msgspec.Raw = msgspec.Raw(b"null")
    following: bool = False
    left_out: int = 0


def tail(what: str | None, after: int, data: str | None, *, as_json: bool) -> Exit:
    """Follow a run, a deployment, or everything; ends with the run. Raises NoHost, Said, Unanswered."""
    where = existing(data)
    if what is not None and what.startswith("run_"):
        return _Run(where, run_named(what), after, as_json=as_json).follow()
    return _everything(where, what, as_json=as_json)


# --- one run -------------------------------------------------------------------------------------------------------


class _Run:
    """One run, from the event behind ``after``."""

    def __init__(self, where: DataDir, run: str, after: int, *, as_json: bool) -> None:
        self._where, self._run, self._seq = where, run, after
        self._show = _Shower(as_json=as_json, one=True)
        self._end: ev.AnyEvent | None = None

    def follow(self) -> Exit:
        """To its end, or the host's."""
        if self._seq:
            self._prime()
        try:
            self._from_host()
        except NoHost:
            self._from_disk()
            self._unless_ended("no host runs here, and the run goes on only with one")
        except Unanswered:
            self._from_disk()
            self._unless_ended("the host has ended, or has broken off")
        return Exit.OK if isinstance(self._end, ev.RunCompleted) else Exit.REFUSED

    def _prime(self) -> None:
        """Let the events before be known, so that what comes is told as if they had been shown."""
        for each in _pages(lambda after: page_of(self._where, self._run, after)):
            for raw in each.events:
                event = ev.decode(bytes(raw))
                if event.seq > self._seq:
                    return
                self._show.know(each.run, event)
                if isinstance(event, ev.TERMINAL):
                    self._end = event

    def _from_host(self) -> None:
        if self._end is not None:
            return
        asked = Client(self._where.socket).follow("follow", run=self._run, after=self._seq)
        for raw in asked:
            line = raw.strip()
            if not line:
                continue
            told = msgspec.json.decode(line, type=_In)
            if told.event != msgspec.Raw(b"null"):
                self._told(told.deployment, told.run, bytes(told.event))
            if self._end is not None:
                return
        raise Unanswered("the host has ended")

    def _from_disk(self) -> None:
        with suppress(Unanswered):
            for each in _pages(lambda after: page_of(self._where, self._run, after), self._seq):
                for raw in each.events:
                    if self._end is None:
                        self._told(each.deployment, each.run, bytes(raw))

    def _told(self, deployment: str, run: str, raw: bytes) -> None:
        event = ev.decode(raw)
        self._run, self._seq = run, event.seq
        self._show.show(deployment, run, event, raw)
        if isinstance(event, ev.TERMINAL):
            self._end = event

    def _unless_ended(self, why: str) -> None:
        if self._end is None:
            go_on = f"waypost tail {self._run}" + (f" --after {self._seq}" if self._seq else "")
            raise HostGone(str(self._where.path), why, f"go on with `{go_on}`")


# --- everything ----------------------------------------------------------------------------------------------------


def _everything(where: DataDir, deployment: str | None, *, as_json: bool) -> Exit:
    client, show = Client(where.socket), _Shower(as_json=as_json, one=False)
    asked = client.follow("follow") if deployment is None else client.follow("follow", deployment=deployment)
    with suppress(Unanswered):  # killed: as one that has ended
        for raw in asked:
            line = raw.strip()
            if not line:
                continue
            told = msgspec.json.decode(line, type=_In)
            if told.following:
                err(f"following {deployment or 'every deployment'}; Ctrl-C ends it")
            elif told.left_out:
                lost = words.count(told.left_out, "event")
                err(f"left out: {lost}, which came faster than they were read; see `waypost runs`")
            elif told.event != msgspec.Raw(b"null"):
                event = ev.decode(bytes(told.event))
                if not show.knows(told.run) and 1 < event.seq <= _PRIMED and not as_json:
                    show.prime(client, told.run, event.seq)
                show.show(told.deployment, told.run, event, bytes(told.event))
    go_on = "`waypost runs` shows what moved meanwhile, and `waypost tail RUN --after SEQ` each event of a run"
    raise HostGone(str(where.path), "the host has ended, or has broken off", go_on)


# --- showing -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Shower:
    """Writes a line for each event: JSON, or words in the width of the terminal."""

    as_json: bool
    one: bool
    narrators: dict[str, Narrator] = field(default_factory=dict)

    def knows(self, run: str) -> bool:
        """Whether it has been told of the run before."""
        return run in self.narrators

    def know(self, run: str, event: ev.AnyEvent) -> str:
        """Take an event in; in words."""
        narrator = self.narrators.setdefault(run, Narrator())
        said = narrator.tell(event)
        if isinstance(event, ev.TERMINAL) and not narrator.needed:
            del self.narrators[run]
        return said

    def prime(self, client: Client, run: str, seq: int) -> None:
        """Take in what came before an event."""
        for each in _pages(lambda after: client.get(EventsPage, "runs", run, "events", after=after)):
            for raw in each.events:
                event = ev.decode(bytes(raw))
                if event.seq >= seq:
                    return
                self.know(run, event)

    def show(self, deployment: str, run: str, event: ev.AnyEvent, raw: bytes) -> None:
        """Write it."""
        if self.as_json:
            out(f'{{"deployment":"{deployment}","run":"{run}","event":{raw.decode()}}}')
            return
        said = self.know(run, event)
        who = f"{event.seq:5}" if self.one else f"{deployment} {run[: run.rindex('_') + 1 + _TAIL]}"
        line = f"{words.clock(event.at)}  {who}  {said}"
        if sys.stdout.isatty():
            out(*laid_out(line, shutil.get_terminal_size().columns, _INDENT))
        else:
            out(line)


def _pages(ask: Callable[[int], EventsPage], after: int = 0) -> Iterator[EventsPage]:
    """A run's log behind a seq, page by page."""
    while True:
        found = ask(after)
        yield found
        after += len(found.events)
        if not found.events or after >= found.last:
            return
