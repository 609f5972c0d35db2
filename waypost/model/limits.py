"""Every bound in one frozen record, so that a test sets 20 ms where people get 1 s.

Durations are seconds, sizes are bytes, unless the name says otherwise.
"""

import math

import msgspec

from waypost.model.errors import Invalid

KIB = 1024
MIB = 1024 * KIB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one host; the defaults are what users get."""

    # Supervision
    ready_deadline: float = 30.0
    kill_grace: float = 5.0
    frame_look: float = 10.0
    """Between two looks at a frame that a child has begun and not ended; at the third without a byte it is killed."""
    backoff_first: float = 1.0
    backoff_cap: float = 30.0
    stable_after: float = 60.0
    """Of running, after which earlier exits are forgotten."""
    crash_exits: int = 3
    """Unexpected exits within ``crash_window`` that latch the deployment as ``crash-looping``."""
    crash_window: float = 60.0
    """Seconds in which there was a child; pauses don't count."""
    crash_total: int = 10
    """Unexpected exits without a stable time between them that latch it, too."""
    actor_failures: int = 3
    """One-for-all restarts within ``actor_window`` that latch the deployment as ``host-fault``."""
    actor_window: float = 60.0
    stop_deadline: float = 15.0
    idle: float = 60.0
    """Without anything to do, after which a deployment lets its process go; 0: never."""
    threads: int = 300
    """Of a host in all, as a rule: as many deployments are awake at once as that allows."""
    cores: int = 1
    """That the host's own threads keep to; what it starts has all of them."""
    drain: float = 60.0
    """Of a drain for a fresh process: then it goes on all the same, and what executes is resumed by the next one."""
    drain_stop: float = 20.0
    """Of a drain of a host that was told to end: then its children are ended all the same."""
    drain_end: float = 60.0
    """Seconds in which steps with ``on_drain="cancel"`` execute, until a drain that waits for the end cancels them."""
    drain_look: float = 1.0
    """Between two looks at who is left then."""
    recycle_age: float = 0.0
    """Of running, after which a child is replaced by a fresh one; 0: never."""
    recycle_memory: int = 0
    """Resident bytes of a child's process group, above which it is replaced; 0: as much as there is."""
    recycle_grants: float = 0.0
    """Seconds since a child was given the first grants, after which it is replaced; 0: never."""
    recycle_look: float = 60.0
    """Seconds between two looks at these, at most."""
    cancel_grace: float = 30.0
    """For a cancelled run's code to clean up and end; then the host ends the run, and the child if it still works."""
    log_bytes: int = MIB
    """Of a child's output file, before it is turned over once (two files are kept)."""

    # The wire
    frame: int = 2 * MIB
    nesting: int = 32
    requests: int = 256
    """Requests of one child under way."""
    commits: float = 2000.0
    """A second, of one child, averaged over ``commits_over`` seconds; one that writes faster is answered later."""
    commits_over: float = 10.0
    unsent: int = 4 * MIB
    """Bytes that a child leaves unread before it is ended."""
    page: int = MIB
    """Of a ``run.log`` page; at least one event goes in, whatever its size."""
    page_credit: int = 4
    chunk: int = 256 * KIB
    unreferenced_blobs: int = 64 * MIB
    """Of one child, stored and not yet named by an event."""

    # Storage
    flush_operations: int = 64
    seal_objects: int = 4096
    seal_bytes: int = 4 * MIB
    seal_idle: float = 2.0
    seal_age: float = 5.0
    merge_objects: int = 100_000
    """Of one merged pack at most; see ``substrate.packs.merging``."""
    merge_bytes: int = 64 * MIB
    merge_pause: float = 0.01
    """Between two steps of a merge, in which appends have the disk to themselves."""
    reserve: int = 256 * KIB
    """Of a journal, kept for pause and terminal events when the disk is full."""
    event: int = MIB
    inline: int = 64 * KIB
    """Of a value's JSON; above it the event names a blob."""
    value: int = 64 * MIB
    timers: int = 1000
    open_calls: int = 10_000
    signal: int = MIB
    """Of a named signal's payload."""
    signals: int = 1000
    """Of one run that are kept because nobody has waited for them yet."""
    children: int = 256
    """Of one run that haven't ended."""
    child_depth: int = 16
    """Of child runs of child runs."""
    child_input: int = MIB
    """Of a child run's input, as JSON."""
    folds: int = 256
    """Runs whose folded state is cached beside those that must be in memory."""
    deadlines: int = 256
    """That lie ahead and are in memory: the soonest ones; at most twice as many."""

    # Mail
    retention: float = 7 * 86_400.0
    """For how long a consumed mail's id is refused, from its consumption: longer than senders try again."""
    attempts: int = 3
    """Claims of one mail that end with their host before it goes on hold as ``poison``; and exits of the child that
    drove a run, without progress between, before the run's step in flight fails as ``child-crashed``."""
    mail: int = 32 * MIB
    bodies: int = 128 * MIB
    """Of all requests to the API that are being read or answered, together."""
    spool_poll: float = 1.0

    # Steps
    retry_first: float = 1.0
    retry_cap: float = 60.0

    def __post_init__(self) -> None:
        """Raises Invalid: a horizon that is none would let every redelivery start another run."""
        if not 0 < self.retention < math.inf:
            raise Invalid(f"retention={self.retention!r} is no horizon", hint="give seconds above 0, such as 604800.0")


DEFAULT = Limits()
