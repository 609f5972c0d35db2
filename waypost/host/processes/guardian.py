"""The last one out: a small process that kills the groups of a host's children when the host is gone, however it went.

The kernel ends each child with its host, and what a child has started is in its group. The guardian is told of each
group, on a pipe that only the host holds: the end of the pipe is the end of the host. It is a shell's loop, in a
session of its own, deaf to every signal that can be ignored. What has left its group is found by the next start
(`ipc.strays`), unless it runs as a deployment's own user, of which the guardian is told, too: a last command
(`sweeping`) ends all that runs as those at once.

A host has ``GUARDIANS`` of them: who kills the host and one of them in the same instant, or one a moment before, has
missed the other. No word of the host's command line is in theirs, so that no name by which somebody kills a host and
its children is also theirs; what they execute at the end comes by the environment.

One that is killed is replaced at once (`guarding`), and told everything; but after one that ended within
``BRIEF`` seconds of its start, or couldn't be started, there is a pause, so that what ends them all isn't met again and
again: from ``BRIEF`` to ``LONGEST``, or to the next word.

Promise: nothing that lives is killed. A group is taken off the list before its leader is reaped, so its number can't
have become another's; and a guardian that has to be replaced is dead before its pipe is closed.
"""

import logging
import os
import shlex
import subprocess
import time

log = logging.getLogger(__name__)

BRIEF, LONGEST = 1.0, 60.0
GUARDIANS = 2
SHELL = "/bin/sh"
NAME = "last-one-out"
SCRIPT = """\
trap '' HUP INT QUIT TERM TSTP
known=
while read -r what which; do
    kept=
    for each in $known; do [ "$each" = "$which" ] || kept="$kept $each"; done
    known=$kept
    [ "$what" = + ] && known="$known $which"
done
users=
for each in $known; do
    case $each in
        u*) users="$users ${each#u}" ;;
        *) kill -s KILL -- "-$each" ;;
    esac
done 2>/dev/null
[ -z "$LAST" ] || [ -z "$users" ] || eval "exec $LAST $users"
"""


class Guardian:
    """Told of groups by one thread, the one that starts and ends them; ended by ``close`` once there are none.

    ``last``: what it executes when the host is gone and the groups are killed, with the users that it knows of by then,
    if it knows of any; it is left the descriptors ``kept``.
    """

    def __init__(self, last: tuple[str, ...] = (), kept: tuple[int, ...] = ()) -> None:
        self._last, self._kept = last, kept
        self._known: dict[str, None] = {}
        """Groups, and users with a ``u`` before them, as it was told."""
        self._process: subprocess.Popen[bytes] | None = None
        self._since = 0.0
        self._pause = BRIEF
        self.due: float | None = None
        """When to try ``again`` (monotonic seconds), where there is none."""
        self._begin()

    @property
    def pid(self) -> int | None:
        """Of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def watch(self, group: int) -> None:
        """Kill this group when the host is gone."""
        self._add(f"{group}")

    def forget(self, group: int) -> None:
        """No more; to be called before the group's leader is reaped."""
        self._drop(f"{group}")

    def watch_user(self, uid: int) -> None:
        """End all that runs as this user when the host is gone."""
        self._add(f"u{uid}")

    def forget_user(self, uid: int) -> None:
        """No more: nothing runs as it."""
        self._drop(f"u{uid}")

    def ended(self) -> None:
        """Its process has ended, and that wasn't asked for."""
        brief = time.monotonic() - self._since < BRIEF
        self.close()
        log.warning("the guardian was ended by somebody; another one takes its place%s", ", soon" if brief else "")
        if brief:
            self._later()
        else:
            self._pause = BRIEF
            self._begin()

    def again(self) -> None:
        """The pause is over: there is one again, or another pause."""
        self._begin()

    def close(self) -> None:
        """End it, with nothing killed, and without another one."""
        self.due = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()  # not buffered: nothing is written by this
            self._process = None

    def _add(self, what: str) -> None:
        self._known[what] = None
        self._say(f"+ {what}\n")

    def _drop(self, what: str) -> None:
        self._known.pop(what, None)
        self._say(f"- {what}\n")

    def _say(self, words: str) -> None:
        if not self._tell(words):  # dead, or stopped for so long that its pipe is full
            self.close()
            self._begin()

    def _begin(self) -> None:
        try:
            self._process, self._since = _started(self._last, self._kept), time.monotonic()
            self.due = None
        except OSError as failure:
            log.warning("there is no guardian: %s; a killed host leaves its children to the kernel", failure)
            self._later()
        self._tell("".join(f"+ {what}\n" for what in self._known))

    def _later(self) -> None:
        self.due = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST)

    def _tell(self, words: str) -> bool:
        """Write it whole, or not at all: less than a pipe's least capacity goes at once."""
        if self._process is None:
            return False
        assert self._process.stdin is not None
        data = words.encode()
        try:
            return os.write(self._process.stdin.fileno(), data) == len(data)
        except OSError:
            return False


def _started(last: tuple[str, ...], kept: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(  # noqa: S603 - our own words
        (SHELL, "-c", SCRIPT, f"{NAME}-of-{os.getpid()}"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"LAST": shlex.join(last)},
        cwd="/",
        bufsize=0,
        pass_fds=kept,
        start_new_session=True,
    )
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    return process
