"""How many files a host may have open: as many as it is allowed to, and a word beforehand where that isn't enough.

A limit that is met in the middle looks like a disk that fails, and takes deployments down. What a shell or a service
manager gives at first (the soft limit, mostly 1,024) is less than a hundred deployments need; what it allows (the hard
one) is mostly more than anybody does.
"""

import resource

ROOM = 65_536
"""More than this helps nobody, and some programs look at each descriptor that they might have."""
OWN = 64
"""The host itself: its folder, its socket and whoever asks it something."""
EACH = 16
"""A deployment that isn't dormant: its journal, its index, the pipes and sockets of its process, a spare or two."""


def raise_limit() -> int:
    """Let this process, and what it starts, have as many open as it is allowed to; how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = ROOM if hard == resource.RLIM_INFINITY else min(hard, ROOM)
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return ROOM if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def too_few(limit: int, deployments: int) -> str:
    """What to say of a limit under which not all of these deployments can be awake at once; empty where they can."""
    needed = OWN + EACH * deployments
    if limit >= needed:
        return ""
    enough = max(0, limit - OWN) // EACH
    return (
        f"at most {limit:,} files may be open here, enough for about {enough:,} of {deployments:,} deployments at "
        f"once; the others fail\n  allow it {needed:,} or more: `ulimit -n` of the shell, LimitNOFILE= of systemd"
    )
