"""Everything that can go wrong between host and child, with whose fault it was in the type.

`PeerError` and below: the other side broke the protocol; the channel is over and so is the child (design §8).
Every other `IpcError`: this side asked for something impossible; the channel is as usable as before.
"""

import errno
from typing import ClassVar

from waypost.model.errors import WaypostError


class IpcError(WaypostError):
    """Base of all errors of the wire."""


# Ours: nothing has been sent, no sequence number is used up.


class FrameTooLarge(IpcError):
    """A frame over the limit was to be sent."""

    def __init__(self, channel: str, size: int, limit: int) -> None:
        super().__init__(
            f"{channel}: a frame of {size} bytes is over the limit of {limit}",
            hint="split the message into chunks or pages",
        )
        self.channel = channel
        self.size = size
        self.limit = limit


class NotEncodable(IpcError):
    """A payload holds something that the strict wire format has no form for."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this payload can't travel: {reason}",
            hint="send None, bool, 64-bit int, finite float, str, bytes, list and str-keyed dict",
        )
        self.reason = reason


class BadCbor(IpcError):
    """Bytes that are not exactly one item of the strict wire format; a channel turns it into `Malformed`."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not strict CBOR: {reason}")
        self.reason = reason


class ChannelEnded(IpcError):
    """A channel was used after it had ended: after a violation, at its last sequence number, or closed."""

    def __init__(self, channel: str, reason: str) -> None:
        super().__init__(f"{channel}: the channel has ended ({reason})", hint="start a new generation")
        self.channel = channel
        self.reason = reason


class SecretWiped(IpcError):
    """A key was used after it had been overwritten."""

    def __init__(self) -> None:
        super().__init__("this key has been wiped", hint="its channel has ended; start a new generation")


class BadSecrets(IpcError):
    """The descriptor that should bring the child its secrets brought something else."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the secrets of this child are unusable: {reason}", hint="only a Waypost host starts a child")
        self.reason = reason


class BadAnchor(IpcError):
    """A variable that the host sets for its child is missing or misshapen."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"environment variable {name} {reason}",
            hint="only a Waypost host starts a child; use `waypost run FILE`",
        )
        self.name = name
        self.reason = reason


class ReservedVariable(IpcError):
    """A deployment lists a variable under ``env`` that the host sets itself."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(
            f"the host itself sets {', '.join(names)} for every child",
            hint="take the name out of Workflow(env=[…])",
        )
        self.names = names


_SHORT = {
    errno.EMFILE: "allow its host more open files: `ulimit -n` of the shell, LimitNOFILE= of systemd",
    errno.ENFILE: "the machine has no more open files to give: fs.file-max of sysctl",
    errno.EAGAIN: "allow its user more processes: `ulimit -u` of the shell, TasksMax= of systemd",
    errno.ENOMEM: "the machine has no memory to spare",
}
"""Where it isn't the program's fault."""


class SpawnFailed(IpcError):
    """No child came to be; nothing of it is left. ``stage``: ``descriptors``, ``exec`` or ``pidfd``."""

    def __init__(self, program: str, stage: str, failure: OSError) -> None:
        super().__init__(
            f"can't start {program}: {failure.strerror or failure} (errno {failure.errno}, at {stage})",
            hint=_SHORT.get(failure.errno or 0) or f"check that {program} exists and may be executed by this user",
        )
        self.program = program
        self.stage = stage
        self.errno = failure.errno or 0


class KernelRefused(IpcError):
    """The kernel said no to a call that isolation or supervision rests on."""

    def __init__(self, call: str, errno: int, reason: str) -> None:
        super().__init__(
            f"the kernel refused {call}: {reason} (errno {errno})", hint="Waypost needs Linux 5.4 or newer"
        )
        self.call = call
        self.errno = errno


class BadBox(IpcError):
    """What describes a child's isolation can't be written down, or was not written by a host."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"this child can't be isolated as told: {reason}", hint="only a Waypost host starts a child")
        self.reason = reason


class ChannelTaken(IpcError):
    """A descriptor that leads to the host was closed, or leads somewhere else by now."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(
            f"the workflow's code has closed or replaced descriptor {descriptor}, the process's way to its host",
            hint="let it close what it has opened, and nothing else: no closerange, no dup2 to a number of its own",
        )
        self.descriptor = descriptor


class ProcessGone(IpcError):
    """A process that was asked about exists no more, or can't be seen."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid} is gone", hint="connect again")
        self.pid = pid


# Theirs: hang up.


class PeerError(IpcError):
    """The other side broke the protocol.

    ``channel`` says where (``control up``, …), ``seq`` is the number that the offending frame should have had
    (0 where the violation lies below the frames), ``code`` is a stable word for records and metrics.
    """

    code: ClassVar[str] = "violation"

    def __init__(self, channel: str, seq: int, reason: str) -> None:
        super().__init__(f"{channel}, frame {seq}: {reason}", hint="the child is ended and restarted by its supervisor")
        self.channel = channel
        self.seq = seq
        self.reason = reason


class Oversized(PeerError):
    """A length prefix over the limit."""

    code = "oversized"

    def __init__(self, channel: str, size: int, limit: int) -> None:
        super().__init__(channel, 0, f"a frame of {size} bytes was announced, the limit is {limit}")
        self.size = size
        self.limit = limit


class Truncated(PeerError):
    """The stream ended inside a frame."""

    code = "truncated"

    def __init__(self, channel: str, pending: int) -> None:
        super().__init__(channel, 0, f"the stream ended inside a frame, {pending} bytes into it")
        self.pending = pending


class Malformed(PeerError):
    """A frame or envelope without the shape of one."""

    code = "malformed"


class BadTag(PeerError):
    """A signature or MAC that doesn't verify; nothing of that envelope has been decoded."""

    code = "bad-tag"

    def __init__(self, channel: str, seq: int) -> None:
        super().__init__(channel, seq, "it isn't authentic")


class BadKey(PeerError):
    """A public key that must not be pinned: wrong length, not canonical, or of small order."""

    code = "bad-key"


class NotReady(PeerError):
    """The first frame upstream isn't a ``ready`` that carries a public key."""

    code = "not-ready"

    def __init__(self, channel: str, seq: int) -> None:
        super().__init__(channel, seq, "the first frame must be `ready` with a public key")


class WrongVersion(PeerError):
    """An envelope of another format version."""

    code = "wrong-version"


class WrongDirection(PeerError):
    """An envelope that names the other direction."""

    code = "wrong-direction"


class WrongChannel(PeerError):
    """A good tag on another channel's id: a message of an earlier incarnation."""

    code = "wrong-channel"

    def __init__(self, channel: str, seq: int) -> None:
        super().__init__(channel, seq, "it names another channel id")


class WrongSequence(PeerError):
    """A frame repeated, left out or reordered. ``got`` is what it claimed, None if that was no integer."""

    code = "wrong-sequence"

    def __init__(self, channel: str, seq: int, got: int | None) -> None:
        super().__init__(channel, seq, f"it is numbered {'with no integer' if got is None else got}")
        self.got = got


class BadMessage(PeerError):
    """An authentic envelope whose payload is none of the messages of this channel and direction."""

    code = "bad-message"
