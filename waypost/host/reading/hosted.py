"""What a running host's deployments are asked, whatever state they are in: one that sleeps is woken, and waited for.

Called by the API's threads only. Every call may raise Unanswered: a part of the host has failed, or takes too long.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pykka

from actors.describing import Changed, Description
from actors.messages import Begun, Describe, Forward
from substrate.messages import Done, Operation, Question, Refused, Withheld
from substrate.requests import READING
from waypost.acting import Ref
from waypost.host.answers.records import DeploymentFollowed
from waypost.host.errors import NotHosted, NotNow, RefusedByRule, Unanswered
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.messages import Awaken, Deployed, Deployments
from waypost.host.reading.status import followed
from waypost.model.ids import Deployment
from waypost.shell import ActorBroken, request

TIMEOUT = 30.0
"""Seconds until an answer is given up."""
FOLLOW = 20.0
"""Seconds until who looks on is answered that nothing has changed."""
_SLEEP = frozenset({"dormant", "waking"})
_ON_THE_WAY = frozenset({"idle", "starting", "dozing", "dormant"})
"""States in which a deployment that was woken isn't up yet, or again."""
_WAKING = 16
"""Changes of its state for which is waited then."""


class Hosted:
    """The deployments that the root of this process has; ``timeout`` in seconds, for each answer."""

    def __init__(self, root: Ref, timeout: float = TIMEOUT) -> None:
        self._root, self._timeout = root, timeout

    def deployed(self) -> tuple[Deployed, ...]:
        """Every deployment as the root knows it."""
        found: tuple[Deployed, ...] = self.ask(self._root, Deployments())
        return found

    def follow(self, name: str, mark: str) -> DeploymentFollowed:
        """How a deployment is; if that still has this mark, once it has changed, or after a while."""
        each = self.deployment(name)
        if each.supervisor is None:
            return followed(each.description)
        now: Description = self.ask(each.supervisor, Describe())
        found = followed(now)
        if found.mark != mark:
            return found
        try:
            return followed(request(each.supervisor, Changed(now), timeout=FOLLOW))
        except (pykka.Timeout, pykka.ActorDeadError, ActorBroken):
            return found

    def deployment(self, name: str) -> Deployed:
        """The one of this name. Raises NoSuchDeployment."""
        deployed = self.deployed()
        found = next((each for each in deployed if each.spec.name == name), None)
        if found is None:
            raise NoSuchDeployment(name, tuple(each.spec.name for each in deployed))
        return found

    def begun(self, name: str, what: Begun) -> Any:
        """What a deployment that runs has begun; one that sleeps is woken, and waited for until it runs."""
        found = self.deployment(name)
        slept = found.supervisor is None
        for _ in range(_WAKING):
            supervisor = found.supervisor or self._awaken(name)
            now: Description = self.ask(supervisor, Describe())
            result = self.ask(supervisor, what)
            slept = slept or (isinstance(result, Refused) and result.code == "asleep")
            if not slept or now.state not in _ON_THE_WAY:
                break
            with suppress(pykka.Timeout, pykka.ActorDeadError, ActorBroken):
                request(supervisor, Changed(now), timeout=self._timeout)
            found = self.deployment(name)
        else:
            raise NotNow(f"{name} is on its way for too long")
        return _value(result)

    def _awaken(self, name: str) -> Ref:
        """The supervisor of a deployment, which is woken if it sleeps. Raises NotNow."""
        woken: Deployed = self.ask(self._root, Awaken(Deployment(name)))
        if woken.supervisor is None:
            raise NotNow(f"{name} is being made anew")
        return woken.supervisor

    def forward(self, deployment: str, what: Operation | Question) -> Any:
        """The value of an operation or question, as its docstring says."""
        found = next((each for each in self.deployed() if each.spec.name == deployment), None)
        if found is None:
            raise NotHosted(deployment)
        if found.supervisor is None and isinstance(what, READING):
            raise NotNow(f"nobody has {deployment} open: it is read from the disk")
        supervisor = found.supervisor or self._awaken(deployment)
        return _value(self.ask(supervisor, Forward(what), again=lambda: self._fallen_asleep(deployment)))

    def _fallen_asleep(self, name: str) -> Ref | None:
        """The next supervisor of one that has fallen asleep at this very moment, and has read nothing more."""
        return self._awaken(name) if self.deployment(name).description.state in _SLEEP else None

    def ask(self, ref: Ref, body: Any, again: Callable[[], Ref | None] = lambda: None) -> Any:
        """An actor's answer; ``again``: whom to ask if that one has ended meanwhile."""
        return ask(ref, body, self._timeout, again)


def ask(ref: Ref, body: Any, timeout: float, again: Callable[[], Ref | None] = lambda: None) -> Any:
    """An actor's answer, within so many seconds; ``again``: whom to ask if that one has ended meanwhile.

    Raises Unanswered, and what the actor answers with.
    """
    try:
        return request(ref, body, timeout=timeout)
    except pykka.Timeout:
        raise Unanswered(f"nothing within {timeout:g} s") from None
    except pykka.ActorDeadError:
        if (another := again()) is not None:
            return ask(another, body, timeout, again)
        raise Unanswered("the part of the host that would answer has ended") from None
    except ActorBroken as broken:
        raise Unanswered(f"the part of the host that would answer has failed: {broken.message}") from None


def _value(result: Any) -> Any:
    match result:
        case Done():
            return result.value
        case Refused(code="asleep"):
            raise NotNow(result.why)
        case Refused():
            raise RefusedByRule(result.code, result.why, result.hint)
        case Withheld():
            raise NotNow(result.reason)
        case _:
            raise TypeError(f"a supervisor answered {result!r}")
