"""The API's door for `waypost tail`: events as they become durable, a line of JSON each, until either side ends."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from substrate.messages import LogPage
from waypost.acting import Ref
from waypost.host.api.audience import Audience
from waypost.host.api.doors import in_thread, number
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.reading import source
from waypost.host.reading.live import Live
from waypost.host.watching.following import Follower
from waypost.model.ids import Deployment, RunId


@dataclass(frozen=True, slots=True)
class FollowDoors:
    """``followers``: the FollowersActor; ``audience``: of the host."""

    live: Live
    followers: Ref
    audience: Audience

    def routes(self) -> Sequence[Route]:
        """The API's door."""
        return (Route("/v1/follow", self.follow, methods=["GET"]),)

    async def follow(self, request: Request) -> Response:
        """``?run=``: one run, from the event behind ``?after=`` to its end; ``?deployment=``; else all, from now on.

        Raises NoSuchRun, AmbiguousRun, NoSuchDeployment, Usage.
        """
        text, name, after = (
            request.query_params.get("run"),
            request.query_params.get("deployment"),
            number(request, "after", 0),
        )
        run: RunId | None = None
        deployment: Deployment | None = None
        if text is not None:
            situation, run = await in_thread(source.locate, self.live.everything(), text)
            deployment = Deployment(situation.name)
        elif name is not None:
            known = await in_thread(lambda: tuple(each.spec.name for each in self.live.deployed()))
            if name not in known:
                raise NoSuchDeployment(name, known)
            deployment = Deployment(name)
        follower = Follower(run, after, deployment)
        return self.audience.told(follower.lines(self.followers, self._page))

    def _page(self, deployment: Deployment, run: RunId, after: int) -> LogPage | None:
        return self.live.everything().page(deployment, run, after)
