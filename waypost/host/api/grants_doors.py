"""The API's doors for grants: what a deployment's steps may do, and a change of it, as the operator who asks."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.routing import Route

from substrate.messages import InForce, ReadGrants
from waypost.host.api.bodies import Bodies
from waypost.host.api.doors import SMALL, asks, decoded, in_thread, named, route, user
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import NotHosted, NotNow
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.reading import granted
from waypost.host.reading.granted import GrantsSet, GrantsShown, GrantsWanted
from waypost.host.reading.live import Live
from waypost.model.grants import StepGrants


@dataclass(frozen=True, slots=True)
class GrantsDoors:
    """Asks the running host; what it doesn't run is read from the disk. Called by threads of the API alone."""

    live: Live
    data: DataDir
    bodies: Bodies

    def routes(self) -> Sequence[Route]:
        """The doors."""
        path = "/v1/deployments/{name}/grants"
        return (route(path, asks(self.shown, named("name"))), route(path, self._change, "POST"))

    async def _change(self, request: Request) -> GrantsSet:
        async with self.bodies.whole(request, SMALL, "the grants") as raw:
            wanted = decoded(raw, GrantsWanted)
        return await in_thread(self.changed, request.path_params["name"], wanted, user(request))

    def shown(self, name: str) -> GrantsShown:
        """What is granted; one that sleeps isn't woken for it. Raises NoSuchDeployment, Unanswered; SubstrateError."""
        try:
            found: InForce = self.live.told(name, ReadGrants())
        except (NotHosted, NotNow):  # nobody has its repository open
            return granted.show_alone(self.data, name)
        spec = next(each.spec for each in self.live.deployed() if each.spec.name == name)
        return granted.shown(
            name, found, steps=spec.steps, mail_to=spec.mail_to, children=spec.children, asked=spec.secrets
        )

    def changed(self, name: str, wanted: GrantsWanted, user: str) -> GrantsSet:
        """Change it. Raises NoSuchDeployment, NotHosted, RefusedByRule, NotNow, Invalid."""
        if name not in self.data.deployments():
            raise NoSuchDeployment(name, self.data.deployments())
        found: StepGrants = self.live.told(name, wanted.operation(user))
        return GrantsSet(deployment=name, step=wanted.step, grants=found, by=user)
