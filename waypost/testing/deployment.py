"""One deployment under its supervisor with its whole real crew and scripted children, and listeners for a host."""

import os
import sys
from pathlib import Path

from actors import SupervisorActor
from actors.child_process import ChildCommand
from actors.describing import Description
from actors.messages import Forward, Start, StateChanged, Stop
from ipc.secret import Secret
from substrate.files.disk import Disk
from substrate.messages import Accepted, Done, Enqueue
from substrate.signing.keys import SigningKey
from waypost.acting import Ref
from waypost.host.clock import SystemClock
from waypost.host.datadir.directory import DataDir, lay_out, prepare
from waypost.host.processes.wires import Wires
from waypost.host.root.crew import HostCrew, Ports
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.childhood import CODE
from waypost.testing.listener import Listener
from waypost.testing.patience import PATIENCE
from waypost.testing.scripted_child import scripted
from waypost.testing.supervision import a_spec

LIMITS = Limits(
    backoff_first=0.02, backoff_cap=0.05, kill_grace=0.3, stop_deadline=10.0, ready_deadline=20.0, actor_window=60.0
)
READY = f"child.ready({CODE!r})\n"
SERVE = READY + "child.serve()\n"


def mail(number: int) -> Enqueue:
    """A mail that nobody takes up: scripted children take no runs."""
    lines = (
        "From: a@example.com",
        "To: orders@example.com",
        "Subject: hello",
        f"Message-ID: <{number}@example.com>",
        "",
        "text",
        "",
    )
    return Enqueue("\r\n".join(lines).encode())


def by_count(folder: Path, *scripts: str) -> tuple[str, ...]:
    """A child whose n-th life follows the n-th script; the last one from then on."""
    counter = folder / "lives"
    cases = "\n".join(f"if life == {n}:\n" + _indented(script) for n, script in enumerate(scripts[:-1]))
    return scripted(
        f"import os, pathlib\nlives = pathlib.Path({str(counter)!r})\n"
        "life = len(lives.read_bytes()) if lives.exists() else 0\n"
        "lives.write_bytes(b'x' * (life + 1))\n"
        f"{cases}\nif life >= {len(scripts) - 1}:\n{_indented(scripts[-1])}"
    )


def _indented(script: str) -> str:
    return "".join(f"    {line}\n" for line in script.splitlines())


class Deployment:
    """One deployment under its supervisor, and listeners where the host would be."""

    def __init__(self, folder: Path) -> None:
        self.data: DataDir = prepare(folder)
        lay_out(self.data)
        self.key = SigningKey.load_or_create(self.data.signing_key)
        self.clock = SystemClock().start()
        self.wires = Wires().start()
        self.host, self.stream = Listener(), Listener()
        self.supervisors: list[Ref] = []

    def start(
        self, prefix: tuple[str, ...], *, limits: Limits = LIMITS, code: str = CODE, disk: Disk | None = None
    ) -> Ref:
        """Begin to supervise."""
        ports = Ports(
            data=self.data,
            key=self.key,
            mail_key=Secret(bytes(32)),
            clock=self.clock,
            wires=self.wires,
            limits=limits,
            disk=disk or Disk(),
        )
        command = ChildCommand(
            python=sys.executable, arguments=(), environment=os.environ, output=lambda _: None, argv_prefix=prefix
        )
        spec = a_spec(code=code)
        supervisor = SupervisorActor.start(
            spec,
            HostCrew(spec, command, ports, runs="thread"),
            clock=self.clock,
            parent=self.host.ref,
            sink=self.host.ref,
            subscribers=(self.stream.ref,),
            limits=limits,
        )
        self.supervisors.append(supervisor)
        supervisor.tell(Start())
        return supervisor

    def until(self, state: str, reason: str = "") -> Description:
        """The next time that the host is told of this state."""
        while True:
            description: Description = self.host.next(StateChanged, timeout=PATIENCE).description
            if description.state == state and reason in description.reason:
                return description

    def enqueue(self, number: int) -> Accepted:
        """A mail through the supervisor, accepted durably."""
        result = request(self.supervisors[-1], Forward(mail(number)), timeout=PATIENCE)
        assert isinstance(result, Done), result
        accepted: Accepted = result.value
        return accepted

    def close(self) -> None:
        """Stop in order."""
        for supervisor in self.supervisors:
            if supervisor.is_alive():
                request(supervisor, Stop(), timeout=PATIENCE)
                supervisor.stop(timeout=PATIENCE)
        assert self.wires.close()
        self.clock.stop()
        self.host.stop()
        self.stream.stop()
