"""``waypost run [FILE|DIR]…``: the host in the foreground. The main thread only waits for signals."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Self, TypeAlias

from substrate.errors import SubstrateError
from waypost.cli import words
from waypost.cli.granting import introduced
from waypost.cli.output import complain, err, out
from waypost.cli.place import existing, for_host, plain
from waypost.host.api.metrics_server import place as metrics_place
from waypost.host.app import Config, Host
from waypost.host.code.deployed import Here, deployed_here
from waypost.host.code.describe import describe_all
from waypost.host.datadir.directory import DataDir
from waypost.host.described import Described
from waypost.host.descriptors import raise_limit, too_few
from waypost.host.errors import HostError, NoThread
from waypost.host.exits import Exit, exit_for
from waypost.host.processes.guard import hide
from waypost.host.processes.isolation import Asked, Isolation, choose
from waypost.host.reading.granted import show_alone
from waypost.model.limits import DEFAULT, Limits
from waypost.shell import ActorBroken

Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None
"""As ``signal.signal`` has it."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OURS = frozenset({"actors", "ipc", "substrate", "waypost"})
LOG_LINE = "waypost: %(whose)s%(message)s"
"""A line of the host's log, as ``warnings`` has it."""
_NO_THREAD = "start new thread"
"""In what Python raises where the system has none to give: it has no type of its own."""
_MANY = 10
"""Files: so many take long enough to make one wonder."""
_GIVEN_UP = b"\0"
"""A ring that no signal makes: none has the number 0."""
_DONE = b"\xff"
"""Nor this one."""


def run(
    files: Sequence[str],
    data: str | None,
    *,
    quiet: bool,
    allow_network: bool,
    asked: Asked,
    limits: Limits = DEFAULT,
    metrics: str | None = None,
) -> Exit:
    """Run a host until it is told to stop, or can't go on. Raises HostError, BadKey before it has begun."""
    hide()
    # Whoever started this may ignore it, and then the kernel tells nobody how a child ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    logging.basicConfig(level=logging.WARNING, format=LOG_LINE, handlers=[warnings()])
    measured = None if metrics is None else metrics_place(metrics)
    place = for_host(data, Path(files[0])) if files else existing(data).path
    for each in (*files, str(place)):
        plain("the path", str(Path(each).absolute()))
    isolation = choose(asked, data=str(place), environment=os.environ)
    if len(files) >= _MANY:
        _said(f"waypost: looking at {len(files):,} workflows first, one after the other", to=err)
    here = _here(tuple(map(Path, files)), place, isolation)
    described = here.described
    if warning := too_few(raise_limit(), sum(each.sleep is None for each in described)):
        _said(f"waypost: {warning}", to=err)
    with Signals() as signals:
        config = Config(
            data=place,
            described=described,
            left_out=here.left_out,
            command=("waypost", *sys.argv[1:]),
            environment=dict(os.environ),
            allow_network=allow_network,
            isolation=isolation,
            limits=limits,
            say=None if quiet else say,
            metrics=measured,
            give_up=signals.give_up,
        )
        _said(f"waypost: {words.isolation(str(isolation))}")  # before anything could be run in it
        try:
            host = Host.start(config)
        except RuntimeError as failure:
            if _NO_THREAD not in str(failure):
                raise
            raise NoThread(str(failure)) from None
        try:
            _introduce(host, described, named=bool(files))
            ending = signals.wait()
            if isinstance(ending, HostError):
                complain(ending.message, ending.hint)
            else:
                patience = f"what executes has {limits.drain_stop:g} s to come to rest, runs stay live"
                _said(f"{ending.name}: stopping; {patience}; once more: at once")
                signals.until(lambda: _end(host, limits.drain_stop))
        finally:
            host.close()
    if isinstance(ending, HostError):
        return exit_for(ending.code)
    _said("stopped; the same command goes on where it was")
    return Exit.OK


def _here(files: tuple[Path, ...], place: Path, isolation: Isolation) -> Here:
    """What the host runs: these, or, where none is named, all that is deployed in its data directory."""
    deadline, environment = DEFAULT.ready_deadline, os.environ
    if files:
        return Here(describe_all(files, timeout=deadline, environment=environment, data=place, isolation=isolation))
    return deployed_here(DataDir(place), timeout=deadline, environment=environment, isolation=isolation)


def warnings() -> logging.Handler:
    """Where the host's log goes; a line of a library's has its name, as it may say anything."""

    def whose(record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], ActorBroken):
            return False  # the actor has said it itself; this is its library's word on the same
        record.whose = "" if record.name.partition(".")[0] in _OURS else f"{record.name}: "
        return True

    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(whose)
    return handler


def say(at: str, text: str) -> None:
    """One line of the timeline."""
    _said(f"{words.clock(at)}  {text}")


def _said(*lines: str, to: Callable[..., None] = out) -> None:
    """What a host says: that nobody reads it any more, or that a disk is full, is no reason to end, or not to begin."""
    with suppress(OSError, ValueError):
        to(*lines)


class Signals:
    """What the main thread waits for: a signal that ends the host, or the host's own end. A second signal is final.

    It waits for a byte, which the interpreter writes the moment that a signal comes: a wait on a queue isn't ended by
    one that comes just before it begins, or that another thread gets.
    """

    def __init__(self) -> None:
        self._ended: SimpleQueue[HostError] = SimpleQueue()
        self._bell, self._ring = socket.socketpair()
        self._ring.settimeout(0)  # the interpreter wants it so, and one ring that isn't heard yet is enough
        self._before: list[tuple[signal.Signals, Handler]] = []
        self._rung = -1

    def give_up(self, error: HostError) -> None:
        """From any thread: the host can't go on."""
        self._ended.put(error)
        with suppress(OSError):
            self._ring.send(_GIVEN_UP)

    def wait(self) -> signal.Signals | HostError:
        """The first that comes."""
        came: signal.Signals | HostError | None = None
        while came is None:
            rung = self._bell.recv(1)
            if rung == _GIVEN_UP:
                came = self._ended.get()
            elif rung[0] in _ENDING:
                came = signal.Signals(rung[0])
        for number in _ENDING:
            signal.signal(number, _at_once)
        return came

    def until(self, work: Callable[[], None]) -> None:
        """Have this done in another thread, after ``wait``, and wait for it: the next signal ends the process."""
        failures: list[BaseException] = []

        def done() -> None:
            try:
                work()
            except BaseException as failure:  # noqa: BLE001 - raised again by whoever waits
                failures.append(failure)
            finally:
                with suppress(OSError):
                    self._ring.send(_DONE)

        threading.Thread(target=done, name="waypost-last-work", daemon=True).start()
        while (rung := self._bell.recv(1)) != _DONE:
            if rung[0] in _ENDING:  # it came before its handler was another one
                _at_once(rung[0], None)
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        self._rung = signal.set_wakeup_fd(self._ring.fileno(), warn_on_full_buffer=False)
        for number in _ENDING:
            self._before.append((number, signal.signal(number, _noted)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._rung)
        self._ring.close()
        self._bell.close()


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Nothing: the interpreter has rung, and only does so for a signal that has a handler."""


def _at_once(_number: int, _frame: FrameType | None) -> None:
    """Whoever asks twice means it: what is accepted is durable, and the kernel ends the children."""
    os._exit(Exit.REFUSED)


def _end(host: Host, patience: float) -> None:
    host.drain(patience)
    host.close()


def _introduce(host: Host, described: Sequence[Described], *, named: bool) -> None:
    _said(f"data in {host.data.path}, signed by {host.key.fingerprint}")
    metrics = host.config.metrics
    if metrics is not None:
        whom = "this machine" if metrics.local else "whoever reaches that address"
        _said(f"metrics at http://{metrics}/metrics, for {whom}")
    for each in described:
        children = f", children {', '.join(each.spec.children)}" if each.spec.children else ""
        _said(f"{each.spec.name}: mail for {each.spec.address}, steps {', '.join(each.spec.steps) or 'none'}{children}")
        if named and (each.spec.mail_to or each.spec.secrets):
            with suppress(SubstrateError):  # what is wrong with its repository is said by its supervisor
                _said(*(f"    {line}" for line in introduced(show_alone(host.data, each.spec.name))))
