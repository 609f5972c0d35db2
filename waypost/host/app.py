"""The composition root: one host on one data directory, from its lock to its last thread.

What is opened is closed in reverse order, also when the opening fails half-way. Nothing here decides anything.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import pykka

from actors.describing import Description
from actors.messages import StateChanged
from actors.watching import APPROVALS, FOLLOWED
from ipc import cores
from ipc.secret import Secret
from substrate.files.disk import Disk
from substrate.signing.keys import SigningKey
from waypost import __version__
from waypost.acting import Ref
from waypost.host.answers.records import Status
from waypost.host.api.audience import Audience
from waypost.host.api.bodies import Bodies
from waypost.host.api.credential_doors import CredentialDoors
from waypost.host.api.following_doors import FollowDoors
from waypost.host.api.grants_doors import GrantsDoors
from waypost.host.api.looking import Lookout
from waypost.host.api.metrics_server import Place, listen, metrics_server
from waypost.host.api.routes import Api
from waypost.host.api.server import ApiServer, bind
from waypost.host.clock import SystemClock
from waypost.host.code.deploying import Means, deploy_all, keys
from waypost.host.code.describe import describe
from waypost.host.code.redeploying import Redeployer
from waypost.host.code.staging import end_looks
from waypost.host.credentials.file import read as read_credentials
from waypost.host.datadir.directory import DataDir, lay_out, prepare, refuse_unfinished
from waypost.host.datadir.lock import HostLock
from waypost.host.described import Described
from waypost.host.errors import HostError
from waypost.host.heap import give_back
from waypost.host.messages import Begin, End
from waypost.host.processes.guardian import GUARDIANS, Guardian
from waypost.host.processes.isolation import NONE, Isolation
from waypost.host.processes.kin import end_leftovers, kin
from waypost.host.processes.reserved import Reserved
from waypost.host.processes.sweeping import Sweeping
from waypost.host.processes.users import users
from waypost.host.processes.wires import Wires
from waypost.host.reading import offline
from waypost.host.reading.explain import LeftOut
from waypost.host.reading.live import Live
from waypost.host.root.actor import HostActor, House
from waypost.host.root.crew import Ports
from waypost.host.root.library import LibraryActor
from waypost.host.root.seats import NOTHING, Seat
from waypost.host.watching import following_logic
from waypost.host.watching.following import FollowersActor
from waypost.host.watching.observer import ObserverSeat
from waypost.host.watching.sink import SinkActor
from waypost.host.watching.sink_states import HangUp
from waypost.host.watching.timeline import TimelineActor
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import stamp
from waypost.shell import ActorBroken, request, tell

SWITCH = 0.002
"""Seconds between two switches of threads: with the default of 5 ms an answer that crosses six of them is slow. Whoever
waits for its turn looks that often: with dozens of deployments at work at once, 0.5 ms cost as much as their work."""
_MARGIN = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a host is started with; read from arguments and environment by the command line alone."""

    data: Path
    described: tuple[Described, ...]
    left_out: tuple[LeftOut, ...] = ()
    """What was to be run, too, and can't be."""
    command: tuple[str, ...]
    """For people who find the lock held."""
    environment: Mapping[str, str] = field(repr=False)
    allow_network: bool = False
    isolation: Isolation = NONE
    limits: Limits = DEFAULT
    say: Callable[[str, str], None] | None = None
    """Is told each line of the timeline: (ISO 8601 UTC, text). None: there is no timeline."""
    metrics: Place | None = None
    """Where a page of metrics is served by itself; the API has it in any case."""
    give_up: Callable[[HostError], None] = lambda _error: None
    """Is told when nothing is left that could go on, and why; from another thread, possibly more than once."""


class Host:
    """A running host. Made by ``Host.start``; ended by ``close``, or as a context."""

    def __init__(self, config: Config, data: DataDir, key: SigningKey, root: Ref, on_close: ExitStack) -> None:
        self.config, self.data, self.key, self.root = config, data, key, root
        self._on_close = on_close

    @classmethod
    def start(cls, config: Config, disk: Disk | None = None) -> Self:
        """Take the data directory, start everything, and listen.

        Raises HostError: DataDirectory and its children, HostRuns, Taken, BadCredentials; BadKey.
        """
        sys.setswitchinterval(SWITCH)
        give_back()
        with ExitStack() as opened:
            clock = SystemClock()
            since = stamp(clock.now().wall)
            data = prepare(config.data, allow_network=config.allow_network)
            opened.enter_context(HostLock.take(data.lock, command=config.command, since=since))
            lay_out(data)
            reserved = opened.enter_context(Reserved.begin())
            sweeping = opened.enter_context(Sweeping(reserved)) if config.isolation.mode == "uid" else None
            end_leftovers(data, reserved, sweeping)
            end_looks()
            refuse_unfinished(data)
            credentials = read_credentials(data.credentials)
            key, secret = keys(data)
            means = Means(
                data=data,
                key=key,
                mail_key=Secret(secret),
                disk=disk or Disk(),
                now=clock.now(),
                limits=config.limits,
            )
            config = replace(config, described=_told(config.isolation, deploy_all(means, config.described)))
            _let_in(config, data)
            listener = bind(data.socket)
            opened.callback(data.socket.unlink, missing_ok=True)
            opened.callback(listener.close)
            measuring = None if config.metrics is None else listen(config.metrics)
            if measuring is not None:
                opened.callback(measuring.close)
            given = _users(config, data, reserved)
            guardians = _guardians(sweeping)
            for guardian in guardians:
                opened.callback(guardian.close)
            observer = ObserverSeat(clock, config.limits)
            wires = Wires(unsent=config.limits.unsent, guardians=guardians, sweeping=sweeping)
            ports = Ports(
                data=data,
                key=key,
                mail_key=Secret(secret),
                clock=clock,
                wires=wires,
                limits=config.limits,
                disk=disk or Disk(),
                credentials=credentials,
                observer=observer,
            )
            library = Seat("library", NOTHING, partial(_library, clock, partial(offline.Offline, data, config.limits)))
            sinks = Seat("sinks", APPROVALS, partial(_sinks, clock, library))
            followers = Seat("followers", FOLLOWED, partial(_followers, clock))
            seats = (observer, library, sinks, followers)
            root = _root(config, ports, clock, wires, opened, seats, observer, given)
            live = Live(
                root,
                config.limits,
                lambda hosted: offline.Offline(data, config.limits, hosted),
                data.out,
                config.left_out,
            )
            lookout = Lookout(root, observer, config.limits, clock)
            status = Status(
                waypost=__version__,
                pid=os.getpid(),
                since=since,
                data=str(data.path),
                isolation=str(config.isolation),
                signer=key.fingerprint,
                deployments=(),
            )
            audience = Audience()
            api = Api(
                live,
                limits=config.limits,
                verify=lambda: offline.check(data, key.public, isolation=str(config.isolation)),
                status=lambda: status,
                deploy=Redeployer(
                    root, partial(_look, config, data), config.limits.drain_stop, [one.name for one in config.left_out]
                ).deploy,
                audience=audience,
                sinks=sinks,
                more=(
                    *lookout.routes(),
                    *FollowDoors(live, followers, audience).routes(),
                    *CredentialDoors(root).routes(),
                    *GrantsDoors(live, data, Bodies(config.limits.bodies)).routes(),
                ),
            )
            with cores.together(config.limits.cores):
                server = ApiServer(listener, api.app(), lambda: wires.pids, kin(data)).start()
            opened.callback(server.stop)
            if config.metrics is not None and measuring is not None:
                serving = metrics_server(measuring, lookout.metrics, local=config.metrics.local).start()
                opened.callback(serving.stop)
                config = replace(config, metrics=Place(config.metrics.host, measuring.getsockname()[1]))
            opened.callback(tell, followers, following_logic.HangUp())
            opened.callback(tell, sinks, HangUp())  # before that: it waits for what is being answered
            return cls(config, data, key, root, opened.pop_all())

    def drain(self, patience: float) -> None:
        """Before ``close``: begin nothing, and let what executes come to rest, for so many seconds at most."""
        timeout = patience + self.config.limits.stop_deadline + _MARGIN
        _quietly(lambda: request(self.root, End(patience), timeout=timeout))

    def close(self) -> None:
        """Stop: no new request, every child down its ladder, everything sealed; runs stay live."""
        self._on_close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _root(
    config: Config,
    ports: Ports,
    clock: SystemClock,
    wires: Wires,
    opened: ExitStack,
    seats: tuple[Seat, ...],
    observer: Ref,
    given: Mapping[str, int],
) -> Ref:
    """Start the actors, and the clock and the wires, which tell the root should they fail.

    Their end goes onto the stack: asked politely first, then by the root's own end, and only then clock and wires.
    """
    opened.callback(_quietly, clock.stop)
    opened.callback(wires.close)
    told: tuple[Ref, ...] = (observer,)
    if config.say is not None:
        timeline = Seat("timeline", None, partial(_timeline, clock, config.say))
        seats, told = (*seats, timeline), (timeline, observer)
    for seat in seats:
        opened.callback(_quietly, partial(seat.leave, _MARGIN))

    def report(description: Description) -> None:
        for watcher in told:
            tell(watcher, StateChanged(description))

    house = House(
        ports=ports,
        described=config.described,
        environment=config.environment,
        isolation=config.isolation,
        users=given,
        report=report,
        give_up=config.give_up,
        seats=seats,
    )
    with cores.together(config.limits.cores):  # all others are started by one of these
        root = HostActor.start(house)
        for seat in seats:
            seat.take(root, 1)
        clock.start(root, ports.observer)
        wires.start(root)
    patience = config.limits.stop_deadline + _MARGIN
    opened.callback(_quietly, lambda: root.stop(timeout=patience * (len(config.described) + 1)))
    opened.callback(_quietly, lambda: request(root, End(), timeout=patience))
    asleep = {each.spec.name: each.sleep for each in config.described if each.sleep is not None}
    root.tell(Begin(tuple(described.spec for described in config.described), asleep))
    return root


def _library(clock: SystemClock, source: Callable[[], offline.Offline], parent: Ref, incarnation: int) -> Ref:
    return LibraryActor.start(source, clock=clock, parent=parent, incarnation=incarnation)


def _sinks(clock: SystemClock, library: Ref, parent: Ref, incarnation: int) -> Ref:
    return SinkActor.start(clock=clock, library=library, parent=parent, incarnation=incarnation)


def _followers(clock: SystemClock, parent: Ref, incarnation: int) -> Ref:
    return FollowersActor.start(clock=clock, parent=parent, incarnation=incarnation)


def _timeline(clock: SystemClock, say: Callable[[str, str], None], parent: Ref, incarnation: int) -> Ref:
    return TimelineActor.start(say, clock=clock, parent=parent, incarnation=incarnation)


def _look(config: Config, data: DataDir, place: Path) -> Described:
    """What a file or a folder declares, as at the start. Raises BadWorkflow."""
    found = describe(
        place,
        timeout=config.limits.ready_deadline,
        environment=config.environment,
        data=data.path,
        isolation=config.isolation,
    )
    return _told(config.isolation, (found,))[0]


def _told(isolation: Isolation, described: tuple[Described, ...]) -> tuple[Described, ...]:
    """Each deployment says how far its code is shut in."""
    return tuple(replace(each, spec=replace(each.spec, isolation=str(isolation))) for each in described)


def _let_in(config: Config, data: DataDir) -> None:
    """Let each deployment's user come as far as its code. Raises NotIsolated."""
    for each in config.described:
        if each.sleep is None:  # the others are let in when they are woken
            config.isolation.let_in(data.code / each.record.tree, data.code, data.path)


def _users(config: Config, data: DataDir, reserved: Reserved) -> Mapping[str, int]:
    """Raises NoUser, NotWritable."""
    if not config.isolation.has_users:
        return {}
    names = [each.spec.name for each in config.described]
    return users(data.users, names, among=config.isolation.asked.uids[:-1], reserved=reserved)


def _guardians(sweeping: Sweeping | None) -> tuple[Guardian, ...]:
    """They end all that runs as a deployment's user, too, where that is what shuts its code in."""
    last, kept = ((), ()) if sweeping is None else (sweeping.last, sweeping.apart)
    return tuple(Guardian(last, kept) for _ in range(GUARDIANS))


def _quietly(end: Callable[[], object]) -> None:
    """What doesn't end in time, has failed, or has ended already, must not keep the rest from ending."""
    with suppress(pykka.Timeout, pykka.ActorDeadError, ActorBroken):
        end()
