"""How far workflow code is shut in: the mode that is asked for, or the strongest that this machine has.

A mode is had when a child was in it once; nothing is concluded from flags. What was asked for by name and can't be had
is an error; what wasn't asked for falls to the next weaker mode, and every answer that names the mode says why.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ipc.box import MODES, Box, Mode
from ipc.environment import AS_THE_HOST, FIXED
from ipc.strays import NO_MARK, Mark
from waypost.child.probe import WORD
from waypost.host.processes.compiled import compile_for_all, of_a_child
from waypost.host.processes.isolation_errors import NotIsolated
from waypost.host.processes.sight import Sight, interpreter
from waypost.host.processes.sweeping import shared
from waypost.host.processes.users import RANGE, closed_to_others

_PROBE_DEADLINE = 30.0
Trial: TypeAlias = Callable[[Mode], str | None]
"""Tries a mode; None when it can be had, else why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the operator wants. ``mode`` None: the strongest that can be had. Numbers of 0 mean: no limit.

    ``memory``: bytes of each process; ``processes``: with threads, of a deployment; ``files``: open, in each process.
    """

    mode: Mode | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    network: bool = True
    memory: int = 0
    processes: int = 0
    files: int = 0
    uids: range = RANGE

    @property
    def limited(self) -> str:
        """The limits, in words."""
        words = {
            "no network": not self.network,
            f"memory {self.memory}": self.memory,
            f"processes {self.processes}": self.processes,
            f"files {self.files}": self.files,
        }
        return ", ".join(word for word, holds in words.items() if holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What is in force. ``why``: the reason for which it is no stronger one, where nobody asked for this one."""

    mode: Mode = "none"
    why: str = ""
    asked: Asked = field(default_factory=Asked)
    sight: Sight | None = None
    root: bool = False
    """Whether the host is root: then each deployment has a user of its own."""

    def __str__(self) -> str:
        """The mode, its limits in brackets, and after a colon why it is no stronger one: as every answer names it."""
        limits = f" ({self.asked.limited})" if self.asked.limited else ""
        return f"{self.mode}{limits}" + (f": {self.why}" if self.why else "")

    @property
    def has_users(self) -> bool:
        """Whether deployments have users of their own."""
        return self.root and self.mode != "none"

    def mark(self, begins: str, uid: int = 0) -> Mark:
        """By which what a child starts is found; none in a namespace, which nothing leaves.

        ``uid``: its own user, if it has one. The one that files are looked at as is every host's of this machine.
        """
        return NO_MARK if self.mode == "namespace" else Mark(begins, uid)

    def let_in(self, folder: Path, *above: Path) -> None:
        """Let a deployment's own user come as far as its code: through these folders, which stay unreadable to it.

        Nothing is to be done in a namespace, where only the code is placed. Raises NotIsolated.
        """
        if self.mode == "uid":
            for each in above:
                each.chmod(0o711)
            if shut := closed_to_others(str(folder)):
                raise NotIsolated(self.mode, f"the code in {folder} couldn't be read: {shut} is closed to others")

    def box(self, code: str | None, uid: int | None = None) -> Box:
        """A child's box. ``code``: the folder on its import path; ``uid``: its user, where deployments have users.

        Without one it is the last of the range, which no deployment is given.
        """
        asked = self.asked
        inside = self.sight is not None and self.mode == "namespace"
        return Box(
            mode=self.mode,
            entries=self.sight.entries(code) if self.sight is not None and inside else (),
            uid=(asked.uids[-1] if uid is None else uid) if self.has_users else 0,
            network=asked.network,
            memory=asked.memory,
            processes=asked.processes,
            files=asked.files,
        )

    def arguments(self, code: str | None, uid: int | None = None) -> tuple[str, ...]:
        """For ``python -m waypost.child``; none where a child is as free as its host."""
        box = self.box(code, uid)
        return () if box == Box() else ("--box", box.text())


NONE = Isolation()
"""A child that is as free as its host."""


def choose(asked: Asked, *, data: str, environment: Mapping[str, str]) -> Isolation:
    """Settle the mode, by trying. ``data``: the data directory, which needn't be there yet.

    Raises NotIsolated, OpensTooMuch.
    """
    root = os.geteuid() == 0
    home = environment.get("HOME", "")
    sight = Sight(
        hidden=os.path.abspath(data),  # noqa: PTH100 - a name, links and all
        home=home if os.path.isabs(home) and home != "/" else "/home",  # noqa: PTH117 - the same
        reads=asked.reads,
        writes=asked.writes,
    )
    sight.check()

    def settled(mode: Mode, why: str = "") -> Isolation:
        return Isolation(mode=mode, why=why, asked=asked, sight=sight, root=root)

    def trial(mode: Mode) -> str | None:
        with shared(asked.uids[-1]):  # or whoever has looked at code on this machine, and ends what is left, ends it
            return tried(settled(mode), environment)

    if asked.mode != "none":
        compile_for_all(of_a_child())
    mode, why = decide(asked, trial, root=root)
    return settled(mode, why)


def decide(asked: Asked, trial: Trial, *, root: bool) -> tuple[Mode, str]:
    """The mode, and why it is no stronger one. Pure, but for the trial. Raises NotIsolated."""
    why = ""
    for mode in MODES if asked.mode is None else (asked.mode,):
        refused = unfit(asked, mode, root=root) or (None if mode == "none" else trial(mode))
        if refused is None:
            return mode, why
        if asked.mode is not None or mode == "none":
            raise NotIsolated(mode, "; ".join(filter(None, (refused, why))))
        if not why or root:
            why = "; ".join(filter(None, (why, f"{mode} can't be had, {refused}")))
    raise AssertionError("every list of modes ends in none")


def unfit(asked: Asked, mode: Mode, *, root: bool) -> str | None:
    """Why a mode can't give what is asked for, whatever the machine is like; None where it can."""
    if mode == "uid" and not root:
        return "only a host that is root can make its children another user"
    if mode == "namespace":
        return None
    if not asked.network:
        return "only a namespace can be without a network"
    if asked.reads or asked.writes:
        return "only in a namespace is there a choice of what can be read and written"
    if mode == "none" and asked.processes:
        return "processes are counted by user, and a child would be of the same one as everything else of yours"
    return None


def tried(isolation: Isolation, environment: Mapping[str, str]) -> str | None:
    """Have a child go into a mode, once; None when it was in there, else why not."""
    if isolation.mode == "uid":
        for path in interpreter():
            if os.path.exists(path) and (shut := closed_to_others(path)):  # noqa: PTH110 - a string
                return f"another user couldn't run {sys.executable}: {shut} is closed to others"
    command = (sys.executable, "-P", "-X", "utf8", "-m", "waypost.child.probe", str(os.getpid()))
    kept = {name: environment[name] for name in AS_THE_HOST if name in environment}
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            (*command, isolation.box(None).text()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=kept | FIXED,
            start_new_session=True,
            timeout=_PROBE_DEADLINE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a child that went in said nothing for {_PROBE_DEADLINE:g} s"
    except OSError as failure:
        return f"{sys.executable}: {failure.strerror}"
    if done.returncode == 0 and done.stdout.strip() == WORD:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"a child that went in ended with status {done.returncode}"
