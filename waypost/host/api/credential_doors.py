"""The API's doors for credentials: how they are, whether they can be read, and the file anew. Never a value."""

from collections.abc import Sequence
from dataclasses import dataclass

import pykka
from starlette.requests import Request
from starlette.routing import Route

from waypost.acting import Ref
from waypost.host.answers.credentials import CredentialsReloaded, CredentialsShown, Delivered
from waypost.host.api.doors import asks, route
from waypost.host.credentials.keeper import KeeperActor
from waypost.host.credentials.messages import ListCredentials, Reload, Reloaded, TryCredentials
from waypost.host.errors import NotNow
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.messages import Deployed, Deployments
from waypost.host.reading.hosted import ask

TIMEOUT = 40.0
"""Seconds: longer than the keeper lets anybody wait."""


@dataclass(frozen=True, slots=True)
class CredentialDoors:
    """Asks the root and the keeper; called by threads of the API alone."""

    root: Ref

    def routes(self) -> Sequence[Route]:
        """The doors."""
        return (
            route("/v1/credentials", asks(self.shown)),
            route("/v1/credentials/check", asks(self.checked), "POST"),
            route("/v1/credentials/reload", asks(self.reloaded, _deployment), "POST"),
        )

    def shown(self) -> CredentialsShown:
        """Each credential, and how its last reading went. Raises NotNow, Unanswered."""
        found: CredentialsShown = ask(self._keeper(), ListCredentials(), TIMEOUT)
        return found

    def checked(self) -> CredentialsShown:
        """Each credential, and whether it can be read now. Raises NotNow, Unanswered."""
        found: CredentialsShown = ask(self._keeper(), TryCredentials(), TIMEOUT)
        return found

    def reloaded(self, name: str) -> CredentialsReloaded:
        """Read all anew, and deliver it to this deployment, or to all that have a supervisor.

        Raises BadCredentials, NoSuchDeployment, NotNow, Unanswered.
        """
        deployed: tuple[Deployed, ...] = ask(self.root, Deployments(), TIMEOUT)
        named = [each for each in deployed if name in {"", each.spec.name}]
        if name and not named:
            raise NoSuchDeployment(name, tuple(each.spec.name for each in deployed))
        supervisors = {str(each.spec.name): each.supervisor for each in named if each.supervisor is not None}
        done: Reloaded = ask(self._keeper(), Reload(supervisors), TIMEOUT)
        # One without a supervisor is asleep, or being made anew: its next process asks for what holds then.
        asleep = (Delivered(deployment=each.spec.name, state="kept") for each in named if each.supervisor is None)
        delivered = sorted((*done.delivered, *asleep), key=lambda each: each.deployment)
        return CredentialsReloaded(credentials=done.credentials, delivered=tuple(delivered))

    def _keeper(self) -> Ref:
        keepers = pykka.ActorRegistry.get_by_class(KeeperActor)
        if not keepers:
            raise NotNow("the host is starting, or ending")
        return keepers[0]


def _deployment(request: Request) -> str:
    """``?deployment=``; empty for all."""
    return request.query_params.get("deployment", "")
