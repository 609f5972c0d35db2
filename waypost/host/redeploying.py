"""A running host takes other code for a deployment of its own: looked at as at a start, and the others don't notice."""

from collections.abc import Callable
from pathlib import Path

import pykka

from waypost.acting import Ref
from waypost.host.answers import CodeDeployed
from waypost.host.describe import Described
from waypost.host.errors import BadWorkflow, NotHosted, Unanswered
from waypost.host.messages import Deployed, Deployments, Redeploy
from waypost.shell import ActorBroken, request

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
        known: tuple[Deployed, ...] = self._request(Deployments())
        hosted = next((each.spec for each in known if each.spec.name == one.spec.name), None)
        if hosted is None:
            raise NotHosted(one.spec.name)
        if hosted.address != one.spec.address:
            why = f"the address of {hosted.name} is {hosted.address}, and here it is {one.spec.address}"
            raise BadWorkflow(place, why, hint="a repository belongs to one address: give the workflow another name")
        new = (hosted.code, hosted.definition) != (one.spec.code, one.spec.definition)
        if new:
            self._request(Redeploy(one))
        return told(one, new=new)

    def _request(self, body: Deployments | Redeploy) -> tuple[Deployed, ...]:
        try:
            answer: tuple[Deployed, ...] = request(self._root, body, timeout=self._timeout)
        except pykka.Timeout:
            raise Unanswered(f"nothing within {self._timeout:g} s") from None
        except pykka.ActorDeadError:
            raise Unanswered("the part of the host that would answer has ended") from None
        except ActorBroken as broken:
            raise Unanswered(f"the part of the host that would answer has failed: {broken.message}") from None
        return answer


def told(one: Described, *, new: bool) -> CodeDeployed:
    """What was deployed, for whoever asked."""
    return CodeDeployed(
        deployment=one.spec.name,
        tree=one.record.tree,
        new=new,
        files=tuple(sorted(one.files)),
        size=sum(map(len, one.files.values())),
    )
