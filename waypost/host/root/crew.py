"""Who plays each part of a deployment: the five actors, made with their ports. No decision is made here."""

from dataclasses import dataclass

from actors.child_process import ChildCommand, ChildProcessActor
from actors.dispatch import DispatchActor
from actors.messages import DeploymentSpec, Peers
from actors.scheduler import SchedulerActor
from actors.terminal import TerminalBroadcasterActor
from ipc.secret import Secret
from substrate.actor import SubstrateActor
from substrate.files.disk import Disk
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from waypost.acting import Clock, Ref
from waypost.host.credentials.file import NOTHING, Configured
from waypost.host.datadir.directory import DataDir
from waypost.host.processes.wires import Wires
from waypost.model.declaration import Runs
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.observing import NOBODY, Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What every deployment of a host shares. No repr shows a key."""

    data: DataDir
    key: SigningKey
    mail_key: Secret
    """Makes the Message-IDs of outgoing mail."""
    clock: Clock
    wires: Wires
    limits: Limits
    disk: Disk
    credentials: Configured = NOTHING
    """What ``credentials.toml`` said at the start."""
    observer: Observer = NOBODY
    """Whom timing marks are told."""


class HostCrew:
    """One deployment's ``Crew``; called by its supervisor alone."""

    def __init__(
        self, spec: DeploymentSpec, command: ChildCommand, ports: Ports, *, runs: Runs, keeper: Ref | None = None
    ) -> None:
        self._spec, self._command, self._ports, self._keeper = spec, command, ports, keeper
        self._runs: Runs = runs

    def substrate(self, parent: Ref, incarnation: int) -> Ref:
        """The one writer of the deployment's repository."""
        spec, ports = self._spec, self._ports
        settings = Settings(
            deployment=spec.name,
            address=spec.address,
            runs=self._runs,
            message_id=message_ids(bytes(ports.mail_key.reveal()), spec.address),
            heads=ports.data.head(spec.name),
        )
        return SubstrateActor.start(
            ports.data.repo(spec.name),
            settings,
            ports.key,
            clock=ports.clock,
            disk=ports.disk,
            limits=ports.limits,
            parent=parent,
            incarnation=incarnation,
            observer=ports.observer,
        )

    def dispatch(self, parent: Ref, incarnation: int, substrate: Ref) -> Ref:
        """The DispatchActor: which mail goes to which run."""
        ports = self._ports
        return DispatchActor.start(
            self._spec,
            substrate,
            clock=ports.clock,
            parent=parent,
            incarnation=incarnation,
            limits=ports.limits,
            observer=ports.observer,
            keeper=self._keeper,
        )

    def scheduler(self, parent: Ref, incarnation: int, substrate: Ref) -> Ref:
        """The SchedulerActor: timers and cron schedules."""
        ports = self._ports
        return SchedulerActor.start(
            self._spec.name,
            substrate,
            clock=ports.clock,
            parent=parent,
            incarnation=incarnation,
            limits=ports.limits,
        )

    def broadcaster(self, parent: Ref, incarnation: int) -> Ref:
        """The TerminalBroadcasterActor: events to watchers."""
        return TerminalBroadcasterActor.start(
            self._spec.name, clock=self._ports.clock, parent=parent, incarnation=incarnation
        )

    def child(self, parent: Ref, generation: Generation, peers: Peers) -> Ref:
        """The ChildProcessActor of one generation."""
        ports = self._ports
        return ChildProcessActor.start(
            self._spec,
            generation,
            peers,
            command=self._command,
            wires=ports.wires,
            clock=ports.clock,
            parent=parent,
            limits=ports.limits,
        )
