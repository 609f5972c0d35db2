"""Watching for approvals: what such a watcher asks for, and what tells it where to begin.

Records only; beside ``actors.messages``.
"""

from dataclasses import dataclass

from waypost.acting import Ref
from waypost.model.ids import Deployment, RunId

APPROVALS = RunId("approvals")
"""What a watcher names instead of a run: events that open or close an approval, of any run."""


@dataclass(frozen=True, slots=True)
class Asking:
    """To a watcher of ``APPROVALS``: it is told of this deployment's events from now on; what was before, it may ask.

    Sent again whenever the deployment's crew, or its supervisor, was made anew.
    """

    deployment: Deployment
    address: str
    supervisor: Ref
