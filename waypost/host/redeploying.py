"""A running host takes other code for a deployment of its own: looked at as at a start, and the others don't notice."""

from collections.abc import Callable
from pathlib import Path

from waypost.acting import Ref
from waypost.host.answers import CodeDeployed
from waypost.host.describe import Described
from waypost.host.errors import BadWorkflow, NotHosted
from waypost.host.hosted import ask
from waypost.host.messages import Deployed, Deployments, Redeploy

_MARGIN = 30.0
"""Seconds beside those that runs have to come to rest."""


class Redeployer:
    """``look`` describes a file or a folder; ``patience``: seconds that runs have to come to rest. For API threads."""

    def __init__(self, root: Ref, look: Callable[[Path], Described], patience: float) -> None:
        self._root, self._look, self._timeout = root, look, patience + _MARGIN

    def deploy(self, place: str) -> CodeDeployed:
        """Run what lies at this absolute path in the place of the deployment of its name, from now on.

        Raises BadWorkflow, NotHosted, NotNow, NotWritable, RefusedByRule, SubstrateError, Unanswered.
        """
        one = self._look(Path(place))
        known: tuple[Deployed, ...] = ask(self._root, Deployments(), self._timeout)
        hosted = next((each.spec for each in known if each.spec.name == one.spec.name), None)
        if hosted is None:
            raise NotHosted(one.spec.name)
        if hosted.address != one.spec.address:
            why = f"the address of {hosted.name} is {hosted.address}, and here it is {one.spec.address}"
            raise BadWorkflow(place, why, hint="a repository belongs to one address: give the workflow another name")
        new = (hosted.code, hosted.definition) != (one.spec.code, one.spec.definition)
        if new:
            ask(self._root, Redeploy(one), self._timeout)
        return told(one, new=new)


def told(one: Described, *, new: bool) -> CodeDeployed:
    """What was deployed, for whoever asked."""
    return CodeDeployed(
        deployment=one.spec.name,
        tree=one.record.tree,
        new=new,
        files=tuple(sorted(one.files)),
        size=sum(map(len, one.files.values())),
    )
