"""The host's API (decision 15): HTTP and JSON under ``/v1``, one function for each door.

Every answer is a record of ``answers/records.py``; every error is a ``Problem`` with its status. Bodies are bounded
before they are read whole. Who is calling comes with the connection (``server``): the operator's name is what the
kernel says of the peer, never what the request says.
"""

import functools
import logging
import time
from collections.abc import Callable, Sequence

import anyio
import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from substrate.errors import SubstrateError
from waypost.acting import Ref
from waypost.host.answers.records import Answer, CodeDeployed, Problem, Status, Verified
from waypost.host.api.audience import Audience
from waypost.host.api.bodies import Bodies
from waypost.host.api.doors import SMALL, Door, Given, as_json, asks, decoded, in_thread, named, number, route, user
from waypost.host.errors import BadPayload, HostError, RefusedByRule, TooLarge, Usage
from waypost.host.reading import queued, reasons, runs, source
from waypost.host.reading.live import Live
from waypost.host.watching.sink import Connection
from waypost.model.errors import Invalid, WaypostError
from waypost.model.event_parts import Origin
from waypost.model.events import Decision
from waypost.model.limits import Limits
from waypost.model.signals import payload, signal_name

log = logging.getLogger(__name__)

COMMENT = 16 * 1024
"""Bytes of an answer's comment: it is recorded whole or not at all."""
REASON = 500
"""Bytes of the reason for a fresh process."""
_MARK = 64
_LOOKERS = 16
"""Who look on wait in threads of their own: nobody else's question waits for them."""
_STATUS = {
    "malformed": 422,
    "too-large": 413,
    "no-such-address": 404,
    "no-such-run": 404,
    "not-hosted": 409,
    "no-such-deployment": 404,
    "ambiguous-run": 409,
    "peer-refused": 403,
    "usage": 400,
    "withheld": 503,
}


class Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST runs/{id}/cancel``."""

    reason: str


class Decided(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST runs/{id}/answer``."""

    approved: bool
    call: str | None = None
    comment: str = ""


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST deployments/{name}/recycle``."""

    reason: str = ""


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST deploy``: an absolute path."""

    path: str


class How(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST deployments/{name}/drain``; may be empty."""

    end: bool = False


class Api:
    """The doors, over a running host. ``verify`` checks every repository; ``status`` is asked for its fixed part.

    ``deploy`` takes the code at a path. ``sinks``: the SinkActor. ``more``: others' doors, with the same ``audience``.
    """

    def __init__(
        self,
        live: Live,
        *,
        limits: Limits,
        verify: Callable[[], Verified],
        status: Callable[[], Status],
        deploy: Callable[[str], CodeDeployed],
        audience: Audience,
        sinks: Ref | None = None,
        more: Sequence[Route] = (),
    ) -> None:
        self._live, self._limits, self._verify, self._status = live, limits, verify, status
        self._bodies = Bodies(limits.bodies)
        self._lookers = anyio.CapacityLimiter(_LOOKERS)
        self._deploy, self._sinks, self._audience, self._more = deploy, sinks, audience, more

    def app(self) -> Starlette:
        """The ASGI application."""
        live, run, name, mail = self._live, named("run"), named("name"), named("mail")
        return Starlette(
            routes=[
                route("/v1/status", self.status),
                route("/v1/runs", self.runs),
                route("/v1/runs/{run}", asks(source.show, self._source, run)),
                route("/v1/runs/{run}/events", self.events),
                route("/v1/runs/{run}/why", asks(reasons.of_run, self._source, run)),
                route("/v1/why", asks(reasons.of_all, self._source)),
                route("/v1/deployments/{name}/why", asks(reasons.of_deployment, self._source, name)),
                route("/v1/queue/{mail:path}/why", asks(reasons.of_mail, self._source, mail)),
                route("/v1/verify", asks(self._verify)),
                route("/v1/approvals", asks(source.approvals, self._source)),
                Route("/v1/approvals/follow", self.follow, methods=["GET"]),
                route("/v1/queue/hold", asks(queued.on_hold, self._source)),
                route("/v1/queue/rejected", asks(queued.rejected, self._source)),
                route("/v1/schedules", self.schedules),
                route("/v1/queue/hold/{mail:path}/release", self._does(live.release, mail), "POST"),
                route("/v1/queue/hold/{mail:path}/reject", self._does(live.reject, mail), "POST"),
                route("/v1/mail/{address:path}", self.mail, "POST", status=202),
                route("/v1/runs/{run}/cancel", self.cancel, "POST"),
                route("/v1/runs/{run}/signals/{name:path}", self.signal, "POST"),
                route("/v1/runs/{run}/answer", self.answer, "POST"),
                route("/v1/runs/{run}/resume", self._does(live.resume, run, user), "POST"),
                route("/v1/deployments/{name}/resume", self._does(live.resume_deployment, name, user), "POST"),
                route("/v1/deployments/{name}/reset", self._does(live.reset_deployment, name, user), "POST"),
                route("/v1/deployments/{name}", self.deployment),
                route("/v1/deployments/{name}/drain", self.drain_deployment, "POST"),
                route("/v1/deployments/{name}/recycle", self.recycle_deployment, "POST"),
                route("/v1/deployments/{name}/seal", self._does(live.seal, name), "POST"),
                route("/v1/deploy", self.deploy, "POST"),
                *self._more,
            ],
            exception_handlers={
                WaypostError: _problem,
                HTTPException: _not_found,
                ClientDisconnect: _gone,
                Exception: _broken,
            },
        )

    def _source(self, _request: Request) -> source.Source:
        return self._live.everything()

    def _does(self, act: Callable[..., Answer], *given: Given) -> Door:
        """A door that acts, and whose body says nothing: it is read all the same, so that an endless one is refused."""
        ask = asks(act, *given)

        async def door(request: Request) -> Answer:
            async with self._bodies.whole(request, SMALL, "the request"):
                return await ask(request)

        return door

    # --- reading -----------------------------------------------------------------------------------------------------

    async def status(self, _request: Request) -> Status:
        """How the host is, and each of its deployments."""
        return msgspec.structs.replace(self._status(), deployments=await in_thread(self._live.statuses))

    async def deployment(self, request: Request) -> Answer:
        """One deployment; ``?known=`` the mark of the last answer: when something has changed, or after a while."""
        name, mark = request.path_params["name"], request.query_params.get("known", "")[:_MARK]
        waits = functools.partial(self._live.follow, name, mark)
        return await anyio.to_thread.run_sync(waits, limiter=self._lookers)

    async def runs(self, request: Request) -> Answer:
        """Runs, newest first; ``?limit=``, ``?deployment=``, ``?state=``, the last with commas between several."""
        limit, query = min(number(request, "limit", source.LIST), source.LIST), request.query_params
        states = query["state"].split(",") if "state" in query else ()
        everything, deployment = self._live.everything(), query.get("deployment")
        return await in_thread(functools.partial(runs.listed, everything, limit, deployment=deployment, states=states))

    async def events(self, request: Request) -> Answer:
        """A page of one run's stored events; ``?after=`` a seq."""
        after = number(request, "after", 0)
        return await in_thread(source.events, self._live.everything(), request.path_params["run"], after)

    async def follow(self, _request: Request) -> Response:
        """Be the host's sink: what is open, then what opens and closes, a line of JSON each, until either side ends."""
        return self._audience.told(Connection(self._sinks).lines())

    async def schedules(self, request: Request) -> Answer:
        """Cron schedules; ``?deployment=`` those of one, ``?count=`` so many ticks of each."""
        from waypost.host.reading import schedules  # it loads the calendar; a host without schedules has no use for it

        count = min(number(request, "count", 1), schedules.MOST)
        name = request.query_params.get("deployment")
        ask = functools.partial(schedules.listed, name=name, count=count)
        return await in_thread(ask, self._live.everything(), time.time_ns() // 1_000_000)

    # --- writing -----------------------------------------------------------------------------------------------------

    async def mail(self, request: Request) -> Answer:
        """Accept a mail; the answer is durable."""
        async with self._bodies.whole(request, self._limits.mail, "the mail") as raw:
            return await in_thread(self._live.deliver, request.path_params["address"], raw)

    async def cancel(self, request: Request) -> Answer:
        """Ask for a run's end, as the operator, or as an administrator, whichever the kernel says."""
        async with self._bodies.whole(request, SMALL, "the request") as raw:
            reason = decoded(raw, Wish).reason.strip()
        if not reason or len(reason.encode()) > COMMENT:
            raise Usage(f"a reason is some text of at most {COMMENT} bytes: it is recorded")
        origin: Origin = "hub-admin" if request.scope["waypost.admin"] else "supervisor-operator"
        who = user(request)
        return await in_thread(self._live.cancel, request.path_params["run"], reason, origin, who)

    async def signal(self, request: Request) -> Answer:
        """Send a run a named signal; its body is the payload, a JSON value; ``?id=`` is its identity."""
        name = signal_name(request.path_params["name"])
        identity = signal_name(request.query_params.get("id", ""), "a signal's identity (?id=)")
        async with self._bodies.whole(request, self._limits.signal, "the payload") as raw:
            try:
                value = payload(raw, self._limits.signal)
            except Invalid as bad:
                raise BadPayload(bad.message) from None
            return await in_thread(self._live.signal, request.path_params["run"], name, identity, value)

    async def answer(self, request: Request) -> Answer:
        """Answer an open approval, as the operator."""
        async with self._bodies.whole(request, SMALL, "the answer") as raw:
            decided = decoded(raw, Decided)
        if len(decided.comment.encode()) > COMMENT:
            raise TooLarge("the comment", COMMENT)
        decision = Decision(approved=decided.approved, by=user(request), text=decided.comment, via="cli")
        return await in_thread(self._live.answer, request.path_params["run"], decided.call, decision)

    async def drain_deployment(self, request: Request) -> Answer:
        """Let what executes come to rest, then hold the deployment, as the operator."""
        async with self._bodies.whole(request, SMALL, "the request") as raw:
            how = decoded(raw, How) if raw else How()
        name, who = request.path_params["name"], user(request)
        return await in_thread(functools.partial(self._live.drain_deployment, name, who, end=how.end))

    async def recycle_deployment(self, request: Request) -> Answer:
        """Give a deployment a fresh process, as the operator."""
        async with self._bodies.whole(request, SMALL, "the request") as raw:
            wanted = decoded(raw, Wanted)
        if len(wanted.reason.encode()) > REASON:
            raise TooLarge("the reason", REASON)
        reason = f"{user(request)}: {wanted.reason or 'no reason given'}"
        return await in_thread(self._live.recycle_deployment, request.path_params["name"], reason)

    async def deploy(self, request: Request) -> Answer:
        """Run what lies at a path of this machine from now on; the body is a ``Place``."""
        async with self._bodies.whole(request, SMALL, "the request") as raw:
            return await in_thread(self._deploy, decoded(raw, Place).path)


# --- errors --------------------------------------------------------------------------------------------------------


def problem_of(error: WaypostError) -> Problem:
    """An error as the API answers it."""
    match error:
        case RefusedByRule():
            code = error.rule
        case HostError():
            code = error.code
        case SubstrateError():
            code = "data-directory"
        case Invalid():
            code = "usage"
        case _:
            code = "refused"
    return Problem(code=code, message=error.message, hint=error.hint)


def _problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, WaypostError)
    problem = problem_of(error)
    return as_json(problem, _STATUS.get(problem.code, 409))


def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path[:200]} is no endpoint of this API"
    return as_json(Problem(code="usage", message=what), error.status_code)


def _gone(_request: Request, _error: Exception) -> Response:
    return as_json(Problem(code="usage", message="the request broke off"), 400)


def _broken(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return as_json(Problem(code="broken", message="the host failed on this request; its log says how"), 500)
