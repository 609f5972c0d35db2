"""A running host takes other code for a deployment of its own: looked at as at a start, and the others don't notice."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from actors.logic.supervisor.words import BROKEN
from waypost.acting import Ref
from waypost.host.answers.records import CodeDeployed
from waypost.host.described import Described
from waypost.host.errors import BadWorkflow, NotHosted
from waypost.host.messages import Deployed, Deployments, Deposit, Redeploy
from waypost.host.reading.hosted import ask

_MARGIN = 30.0
"""Seconds beside those that runs have to come to rest."""


class Redeployer:
    """``look`` describes a file or a folder; ``patience``: seconds that runs have to come to rest. For API threads.

    ``left_out``: what the host was to run and doesn't, such as for code that doesn't load: that is mended by a deploy.
    """

    def __init__(
        self, root: Ref, look: Callable[[Path], Described], patience: float, left_out: Collection[str] = ()
    ) -> None:
        self._root, self._look, self._timeout = root, look, patience + _MARGIN
        self._left_out = frozenset(left_out)

    def deploy(self, place: str) -> CodeDeployed:
        """Run what lies at this absolute path in the place of the deployment of its name, from now on, or next.

        Raises BadWorkflow, NotHosted, NotNow, NotWritable, RefusedByRule, SubstrateError, Unanswered.
        """
        one = self._look(Path(place))
        known: tuple[Deployed, ...] = ask(self._root, Deployments(), self._timeout)
        hosted = next((each.spec for each in known if each.spec.name == one.spec.name), None)
        if hosted is None and one.spec.name in self._left_out:
            return told(one, new=ask(self._root, Deposit(one), self._timeout), later=True)
        if hosted is None:
            raise NotHosted(one.spec.name, first="stop it, deploy again,")
        if hosted.address != one.spec.address:
            why = f"the address of {hosted.name} is {hosted.address}, and here it is {one.spec.address}"
            raise BadWorkflow(place, why, hint="a repository belongs to one address: give the workflow another name")
        new = (hosted.code, hosted.definition) != (one.spec.code, one.spec.definition)
        again = not new and mended(known, one.spec.name)
        if new or again:
            ask(self._root, Redeploy(one), self._timeout)
        return told(one, new=new, again=again)


def mended(known: Iterable[Deployed], name: str) -> bool:
    """Whether its process couldn't load the very code that was looked at now, and loads: what was missing is there."""
    return any(each.spec.name == name and each.description.code == BROKEN for each in known)


def told(one: Described, *, new: bool, later: bool = False, again: bool = False) -> CodeDeployed:
    """What was deployed, for whoever asked."""
    return CodeDeployed(
        deployment=one.spec.name,
        tree=one.record.tree,
        new=new,
        later=later,
        again=again,
        files=tuple(sorted(one.files)),
        size=sum(map(len, one.files.values())),
    )
