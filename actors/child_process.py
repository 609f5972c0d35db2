"""ChildProcessActor: one child's process, keys and descriptors, around the decision in ``actors.logic.child.decision``.

It is started anew for every generation and ends with its child. The process is spawned by this actor's own thread,
because the kernel ties a child to the thread that started it: should this actor ever fail, its child is killed.
"""

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from actors.asking import AskingShell
from actors.draining import ChildWeighed
from actors.logic.child import states as st
from actors.logic.child.decision import LOOK, advance
from actors.logic.child.ears import Ears
from actors.logic.child.frames import Unfinished
from actors.logic.child.outbox import Transmit
from actors.messages import (
    BytesCame,
    ChildProcessMessage,
    DeploymentSpec,
    Peers,
    ProcessEnded,
    Role,
    Send,
    Spawned,
    SpawnFailed,
)
from ipc import spawn
from ipc.control import Sender
from ipc.deliveries import CredentialsUpdated
from ipc.environment import Anchors, child_environment
from ipc.errors import IpcError
from ipc.keys import SpawnKeys, mint
from ipc.masking import NOTHING, Stream
from ipc.memory import Witness
from ipc.sealed import Direction
from ipc.stopped import halted
from ipc.strays import NO_MARK, Mark
from ipc.weight import resident
from waypost.acting import Clock, Next, Ref
from waypost.model.ids import Generation
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.shell import tell


class Wire(Protocol):
    """The host's side of one child's descriptors, served by the one I/O thread. Every call returns at once."""

    def send(self, frame: bytes, *, report: bool) -> None:
        """Write to the control channel; with ``report``, ``Written`` comes when all of it has left."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Signal the process, SIGKILL its whole group; never one that has been reaped."""
        ...

    def taken(self, channel: str, size: int) -> None:
        """So much of what came has been dealt with; a channel that is far ahead isn't read meanwhile."""
        ...

    def release(self) -> None:
        """Nobody listens any more: what still runs is killed and reaped, and everything is closed."""
        ...


class Wires(Protocol):
    """The one I/O thread of a host (``waypost.host.processes.wires``)."""

    def adopt(self, spawned: spawn.Spawned, owner: Ref) -> Wire:
        """Take over a child's descriptors. The owner is told BytesCame, Written, Stalled, and ProcessEnded last."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCommand:
    """How a child is started, and where its output goes.

    ``environment``: the host's own, of which the child gets what `ipc.environment` says. ``output`` takes what the
    child writes to stdout and stderr; ``prepare`` sees to what it is started on, each time anew. Neither may fail.
    """

    python: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    output: Callable[[bytes], None]
    argv_prefix: tuple[str, ...] = ()
    mark: Mark = NO_MARK
    """The beginning of each child's mark, and its user; none where nothing can outlive it anyhow."""
    prepare: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class _Line:
    """A child that was spawned: what is needed to talk with it."""

    keys: SpawnKeys
    ears: Ears
    sender: Sender
    wire: Wire
    witness: Witness | None


class ChildProcessActor(AskingShell):
    """The child of one generation; launched by ``Launch``, and by itself at an end once its child is."""

    def __init__(
        self,
        spec: DeploymentSpec,
        generation: Generation,
        peers: Peers,
        *,
        command: ChildCommand,
        wires: Wires,
        clock: Clock,
        parent: Ref | None = None,
        limits: Limits = DEFAULT,
    ) -> None:
        self._setup = st.Setup(generation=generation, limits=limits)
        super().__init__(
            f"{spec.name}/{Role.CHILD}",
            st.New(),
            self._hear_and_advance,
            clock=clock,
            parent=parent,
            incarnation=generation,
        )
        self._spec, self._command, self._wires, self._limits = spec, command, wires, limits
        self._peers, self.substrate, self.deployment = peers, peers.substrate, spec.name
        self._line: _Line | None = None
        self._mask = NOTHING
        self._printed = {"stdout": Stream(), "stderr": Stream()}

    def _looked(self, line: _Line, state: st.State) -> Unfinished:
        found = line.ears.unfinished(looked=True)
        if not (found.frames and isinstance(state, st.Greeting | st.Talking)):
            return found
        return replace(found, stopped=self._halted(state.pid))

    def _halted(self, child: int) -> bool:
        # In no namespace it is one process: what that has started may be stopped as it likes.
        return halted(child, boxed=self._command.mark == NO_MARK)

    def _hear_and_advance(self, state: st.State, message: ChildProcessMessage, now: Now) -> Next[st.State]:
        """The decision, with bytes turned into what they say first."""
        if isinstance(message, ProcessEnded) and self._line is not None and self._line.witness is not None:
            message = replace(message, starved=self._line.witness.saw())
        if isinstance(message, Send) and isinstance(message.payload, CredentialsUpdated):
            self._mask = self._mask.learned(message.payload.materials)  # before it could print any of them
        if message == LOOK and self._line is not None:
            return advance(self._setup, state, self._looked(self._line, state), now)
        if not isinstance(message, BytesCame):
            return advance(self._setup, state, message, now)
        effects: list[Any] = []  # the union of all effects; performed below by type
        for said in self._hear(message):
            following = advance(self._setup, state, said, now)
            state = following.state
            effects += following.effects
        if self._line is not None:
            self._line.wire.taken(message.channel, len(message.data))
        return Next(state, tuple(effects))

    def _hear(self, came: BytesCame) -> Any:  # an iterator over messages
        if came.channel in {"control", "events"} and self._line is not None:
            return self._line.ears.hear(came)
        if came.channel in self._printed:
            # What it was trusted with goes into no log, whoever of its group prints it.
            shown = self._printed[came.channel].feed(came.data, self._mask)
            if came.data and not shown:
                return ()
            came = replace(came, data=shown)
        messages: tuple[st.Message, ...] = (came,)
        return messages

    def perform(self, effect: Any) -> None:  # noqa: C901 - one line per effect
        """Carry out one effect."""
        match effect:
            case Transmit():
                if self._line is not None:
                    self._line.wire.send(self._line.sender.seal(effect.payload), report=effect.report)
            case st.ToDispatch():
                tell(self._peers.dispatch, effect.message)
            case st.ToBroadcaster():
                tell(self._peers.broadcaster, effect.message)
            case st.Weighing():
                size = resident(effect.pid) if effect.memory else 0
                tell(self._parent, ChildWeighed(self._setup.generation, size, self._halted(effect.pid)))
            case st.Log():
                self._command.output(effect.data)
            case st.Signal():
                if self._line is not None:
                    self._line.wire.signal(effect.number)
            case st.Meet():
                self._peers, self.substrate = effect.peers, effect.peers.substrate
            case st.Spawn():
                self._spawn()
            case _:
                super().perform(effect)

    def _spawn(self) -> None:
        spec, command = self._spec, self._command
        command.prepare()
        keys = mint()
        anchors = Anchors(
            channel_id=keys.channel_id,
            host_key=keys.public_key,
            deployment=spec.name,
            definition=spec.definition,
            address=spec.address,
        )
        try:
            environment = child_environment(command.environment, anchors, listed=spec.env)
            mark = Mark(command.mark.text and command.mark.text + keys.channel_id.hex(), command.mark.uid)
            argv = spawn.command(
                command.python,
                command.arguments,
                parent=os.getpid(),
                argv_prefix=command.argv_prefix,
                mark=mark,
            )
            spawned = spawn.spawn(argv, environment, keys.for_child(), mark=mark)
        except IpcError as failure:
            keys.wipe()
            self.actor_ref.tell(SpawnFailed(f"{failure.message}; {failure.hint}"))
            return
        self.actor_ref.tell(Spawned(spawned.pid))  # before the first byte of it can come
        self._line = _Line(
            keys,
            Ears(keys.channel_id, keys.events, self._limits),
            Sender(
                keys.signing,
                keys.channel_id,
                Direction.DOWN,
                frame=self._limits.frame,
                nesting=self._limits.nesting,
            ),
            self._wires.adopt(spawned, self.actor_ref),
            Witness.of(spawned.pid),
        )

    def finish(self) -> None:
        """Leave nothing behind: no process, no descriptor, no key."""
        if self._line is not None:
            self._line.wire.release()
            self._line.keys.wipe()
