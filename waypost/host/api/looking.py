"""Whoever looks at the whole host: the API's doors for `waypost top` and `waypost metrics`.

What they show is known already, by the root and by the observer: two questions, however many deployments there are.
An observer that has ended, or is slow, is done without, and the answer says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pykka
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from waypost.acting import Clock, Ref
from waypost.host.answers.top import Top
from waypost.host.api.doors import asks, in_thread, route
from waypost.host.errors import Unanswered
from waypost.host.messages import Deployed, Deployments
from waypost.host.watching.observer import Ear, ObserverSeat
from waypost.host.watching.observer_logic import Figures, State
from waypost.host.watching.top import top
from waypost.model.limits import Limits
from waypost.shell import ActorBroken, request

_PATIENCE = 5.0
"""Seconds that the root, or the observer, is waited for."""


@dataclass(frozen=True, slots=True)
class Lookout:
    """Where one looks from: everything about all deployments at once. Called by threads of the API's alone."""

    root: Ref
    observer: Ear | ObserverSeat
    limits: Limits
    clock: Clock

    def routes(self) -> Sequence[Route]:
        """The API's doors."""
        return (
            route("/v1/top", asks(self.top)),
            Route("/v1/metrics", self.metrics, methods=["GET"]),
        )

    async def metrics(self, _request: Request) -> Response:
        """The page of metrics; also served by itself (``metrics_server``)."""
        from waypost.host.watching.metrics import CONTENT_TYPE_LATEST  # a host that nobody measures doesn't load it

        return Response(await in_thread(self.page), media_type=CONTENT_TYPE_LATEST)

    def page(self) -> bytes:
        """The metrics in Prometheus' text format, UTF-8. Raises Unanswered."""
        from waypost.host.watching.metrics import Scrape

        scrape = Scrape(
            deployed=self.deployed(),
            observed=self.observed(),
            dropped=self.observer.dropped,
            limits=self.limits,
            now=self.clock.now(),
        )
        return scrape.page()

    def top(self) -> Top:
        """How each deployment is. Raises Unanswered."""
        return top(self.deployed(), self.observed(), self.limits, self.clock.now())

    def deployed(self) -> tuple[Deployed, ...]:
        """Every deployment as the root knows it. Raises Unanswered."""
        try:
            found: tuple[Deployed, ...] = request(self.root, Deployments(), timeout=_PATIENCE)
        except (pykka.Timeout, pykka.ActorDeadError, ActorBroken):
            raise Unanswered("the part of the host that knows all deployments is busy, or has ended") from None
        return found

    def observed(self) -> State | None:
        """What the observer knows; None if there is none any more."""
        try:
            found: State = request(self.observer, Figures(), timeout=_PATIENCE)
        except (pykka.Timeout, pykka.ActorDeadError, ActorBroken):
            return None
        return found
