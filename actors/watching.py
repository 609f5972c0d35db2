"""Watching all of a deployment for one purpose: what such a watcher asks for, and what tells it where to begin.

Records only; beside ``actors.messages``.
"""

from dataclasses import dataclass

from waypost.acting import Ref
from waypost.model.ids import Deployment, RunId

APPROVALS = RunId("approvals")
"""What a watcher names instead of a run: events that open or close an approval, of any run."""

TURNS = RunId("turns")
"""That something has changed of which a count is kept: what runs wait on, how much mail waits, how runs have ended."""
FOLLOWED = RunId("followed")
"""Nothing by itself: only where the deployment is, so that whoever follows its runs can be passed on to it."""
EVERYTHING = RunId("everything")
"""Every event of every run."""
ATTENDED = frozenset({APPROVALS, TURNS, FOLLOWED, EVERYTHING})
"""Who watches for one of these is told ``Asking``."""


@dataclass(frozen=True, slots=True)
class Turned:
    """To a watcher of ``TURNS``: something is otherwise since the last durable flush; ``ended``: outcomes of runs."""

    deployment: Deployment
    ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asking:
    """To a watcher of ``ATTENDED``: it is told of this deployment's events from now on; what was before, it may ask.

    Sent again whenever the deployment's crew, or its supervisor, was made anew.
    """

    deployment: Deployment
    address: str
    supervisor: Ref


@dataclass(frozen=True, slots=True)
class Sleeps:
    """To a watcher of ``APPROVALS`` or ``FOLLOWED``: a deployment sleeps, and tells nothing until it is woken.

    What it asks of people is read from the disk.
    """

    deployment: Deployment
    address: str
