"""HostActor: the root of a host's actors. It starts the bus and the deployments, and ends them, youngest first."""

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pykka

from actors.child_process import ChildCommand
from actors.describing import Description
from actors.messages import WatchRun
from actors.supervisor import SupervisorActor
from waypost.acting import Next, Ref
from waypost.host.code.deployed import keep_whole
from waypost.host.code.deploying import Means, deploy, materialised
from waypost.host.code.notes import note
from waypost.host.credentials.keeper import KeeperActor
from waypost.host.credentials.messages import Forget
from waypost.host.credentials.providers import Surroundings
from waypost.host.described import Described
from waypost.host.errors import HostBroke, HostError
from waypost.host.mail.bus import MailBusActor
from waypost.host.mail.courier import CourierActor
from waypost.host.messages import BusStarted, DeploymentStarted, Installed, RootMessage
from waypost.host.processes.child_log import ChildLog
from waypost.host.processes.isolation import NONE, Isolation
from waypost.host.processes.kin import kin
from waypost.host.root import states as st
from waypost.host.root.crew import HostCrew, Ports
from waypost.host.root.logic import advance
from waypost.host.root.seats import Seat
from waypost.model.errors import WaypostError
from waypost.model.ids import Deployment
from waypost.model.times import Now
from waypost.shell import Shell, tell

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What the root builds with. ``report`` hears of each change of a deployment's state; neither call may fail."""

    ports: Ports
    described: tuple[Described, ...]
    environment: Mapping[str, str] = field(repr=False)
    """The host's own; a child gets of it what ``ipc.environment`` says."""
    report: Callable[[Description], None]
    give_up: Callable[[HostError], None]
    seats: tuple[Seat, ...] = ()
    """Whoever looks on, and is made anew where it fails."""
    isolation: Isolation = NONE
    users: Mapping[str, int] = field(default_factory=dict)
    """Each deployment's own, where the isolation gives it one."""


class HostActor(Shell):
    """The root. Told ``Begin``; asked ``Deployments`` and ``End``."""

    def __init__(self, house: House) -> None:
        self._setup = st.Setup(house.ports.limits, house.seats)
        super().__init__("host", st.Idle(), self._decide, clock=house.ports.clock)
        self._house = house
        self._kin = kin(house.ports.data)  # once: its folder may be moved while a deployment sleeps
        self._code = {described.spec.name: described for described in house.described}
        self._started: list[Ref] = []
        self._keeper: Ref | None = None

    def _decide(self, state: st.State, message: RootMessage, now: Now) -> Next[st.State]:
        return advance(self._setup, state, message, now)

    def perform(self, effect: Any) -> None:  # noqa: C901, PLR0912 - one case per effect
        """Start, end, tell."""
        match effect:
            case st.StartBus():
                self._start_keeper()
                ports = self._house.ports
                bus = MailBusActor.start(
                    ports.data,
                    limits=ports.limits,
                    clock=ports.clock,
                    parent=self.actor_ref,
                    incarnation=effect.incarnation,
                    observer=ports.observer,
                )
                self._keep(bus)
                self.actor_ref.tell(BusStarted(effect.incarnation, bus))
            case st.StartDeployment():
                self._start_deployment(effect)
            case st.Install():
                self.actor_ref.tell(Installed(effect.one.spec.name, self._install(effect.one)))
            case st.Store():
                self._reply(effect.asker, self._stored(effect.one))
            case st.Dismiss():
                effect.ref.stop(block=False)
            case st.Introduce():
                if (who := effect.seat.occupant) is not None:
                    tell(effect.supervisor, WatchRun(effect.seat.what, who))
            case st.Reseat():
                log.error("the %s has failed; another one takes its place", effect.seat.name)
                effect.seat.take(self.actor_ref, effect.incarnation)
            case st.Vacate():
                log.error("the %s %s; the host goes on without it", effect.seat.name, effect.why)
            case st.Report():
                self._house.report(effect.description)
            case st.Note():
                note(self._house.ports.data, self._code[effect.name], effect.sleep, self._clock.now().wall)
            case st.Forget():
                tell(self._keeper, Forget(effect.name))
            case st.GiveUp():
                self._house.give_up(effect.error)
            case _:
                super().perform(effect)

    def finish(self) -> None:
        """End whatever still lives, youngest first; when this actor failed, say so to whoever waits for the host."""
        for ref in reversed(self._started):
            try:
                ref.stop(block=True, timeout=self._setup.limits.stop_deadline)
            except pykka.Timeout:
                log.error("%s failed to end in time", ref)  # noqa: TRY400 - the traceback is pykka's waiting
        self._house.give_up(HostBroke("the host's root has ended"))

    def _start_keeper(self) -> None:
        """Once, before any deployment: should it fail, the host ends."""
        if self._keeper is not None:
            return
        house, data = self._house, self._house.ports.data
        around = Surroundings(environment=house.environment, folder=data.path, mark=f"{self._kin}credential")
        self._keeper = KeeperActor.start(
            data.credentials, house.ports.credentials, around, clock=house.ports.clock, parent=self.actor_ref
        )
        self._keep(self._keeper)
        for each in self._code.values():
            for variable in sorted(house.ports.credentials.variables.intersection(each.spec.env)):
                which = f"env= lists {variable}, which credentials.toml has as a secret"
                log.warning("%s: %s; its steps get it by waypost.secret() only", each.spec.name, which)

    def _start_deployment(self, effect: st.StartDeployment) -> None:
        ports, name = self._house.ports, effect.spec.name
        courier = CourierActor.start(
            name, limits=ports.limits, clock=ports.clock, parent=self.actor_ref, incarnation=effect.incarnation
        )
        supervisor = SupervisorActor.start(
            effect.spec,
            self._crew(name),
            clock=ports.clock,
            parent=self.actor_ref,
            sink=self.actor_ref,
            subscribers=(courier,),
            limits=ports.limits,
        )
        self._keep(courier, supervisor)
        self.actor_ref.tell(DeploymentStarted(name, effect.incarnation, supervisor, courier))

    def _install(self, one: Described) -> WaypostError | None:
        """Nobody has the repository open: this is a disk write of the root's own."""
        ports = self._house.ports
        try:
            hosted = materialised(ports.data, one)
            self._house.isolation.let_in(ports.data.code / one.record.tree, ports.data.code, ports.data.path)
            deploy(self._means(), one)
        except WaypostError as failure:
            return failure
        self._code[one.spec.name] = hosted
        return None

    def _stored(self, one: Described) -> bool | WaypostError:
        """The same, of one that isn't run here: it is put into a folder by the host that runs it."""
        try:
            return deploy(self._means(), one)
        except WaypostError as failure:
            return failure

    def _means(self) -> Means:
        ports = self._house.ports
        return Means(
            data=ports.data,
            key=ports.key,
            mail_key=ports.mail_key,
            disk=ports.disk,
            now=self._clock.now(),
            limits=ports.limits,
        )

    def _crew(self, name: Deployment) -> HostCrew:
        house, code = self._house, self._code[name]
        limits, tree = house.ports.limits, house.ports.data.code / code.record.tree
        output = ChildLog(house.ports.data.logs / f"{name}.log", limit=limits.log_bytes)
        retries = ("--retry-first", f"{limits.retry_first:g}", "--retry-cap", f"{limits.retry_cap:g}")
        command = ChildCommand(
            python=sys.executable,
            arguments=(*code.arguments(tree), *house.isolation.arguments(str(tree), house.users.get(name)), *retries),
            environment=self._without_secrets(),
            output=output.write,
            mark=house.isolation.mark(self._kin, house.users.get(name, 0)),
            prepare=partial(self._prepare, code),
        )
        return HostCrew(code.spec, command, house.ports, runs=code.runs, keeper=self._keeper)

    def _prepare(self, code: Described) -> None:
        """See to what a child is started on, and as whom; in its actor's thread."""
        house, name = self._house, code.spec.name
        if name in house.users:
            house.ports.wires.expect(house.users[name])
        keep_whole(house.ports.data, name, code.record.tree, house.ports.key.public, house.isolation)

    def _without_secrets(self) -> Mapping[str, str]:
        """The host's environment without what is a secret: that goes to no child by this way."""
        secret = self._house.ports.credentials.variables
        return {name: value for name, value in self._house.environment.items() if name not in secret}

    def _keep(self, *refs: Ref) -> None:
        self._started = [*(ref for ref in self._started if ref.is_alive()), *refs]
