"""The API's doors for grants: what a deployment's steps may do, and a change of it, as the operator who asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from substrate.messages import InForce, ReadGrants
from waypost.host import granted
from waypost.host.answers import Answer
from waypost.host.api import SMALL, in_thread
from waypost.host.bodies import Bodies
from waypost.host.datadir import DataDir
from waypost.host.errors import NotHosted, NotNow, Usage
from waypost.host.granted import GrantsSet, GrantsShown, GrantsWanted
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.live import Live
from waypost.model.grants import StepGrants

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GrantsDoors:
    """Asks the running host; what it doesn't run is read from the disk. Called by threads of the API alone."""

    live: Live
    data: DataDir
    bodies: Bodies

    def routes(self) -> Sequence[Route]:
        """The doors."""
        path = "/v1/deployments/{name}/grants"
        return (Route(path, self._show, methods=["GET"]), Route(path, self._change, methods=["POST"]))

    async def _show(self, request: Request) -> Response:
        return _json(await in_thread(self.shown, request.path_params["name"]))

    async def _change(self, request: Request) -> Response:
        async with self.bodies.whole(request, SMALL, "the grants") as raw:
            wanted = _decoded(raw)
        name, user = request.path_params["name"], request.scope["waypost.user"]
        return _json(await in_thread(self.changed, name, wanted, user))

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


def _decoded(raw: bytes) -> GrantsWanted:
    try:
        return msgspec.json.decode(raw, type=GrantsWanted)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Usage(f"the body can't be read: {bad}") from None


def _json(answer: Answer) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
