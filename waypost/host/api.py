"""The host's API (decision 15): HTTP and JSON under ``/v1``, one function for each door.

Every answer is a record of ``waypost.host.answers``; every error is a ``Problem`` with its status. Bodies are bounded
before they are read whole. Who is calling comes with the connection (``server``): the operator's name is what the
kernel says of the peer, never what the request says.
"""

import functools
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

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
from waypost.host import queued, reasons, source
from waypost.host.answers import Answer, CodeDeployed, Problem, Status, Verified
from waypost.host.audience import Audience
from waypost.host.bodies import Bodies
from waypost.host.errors import BadPayload, HostError, RefusedByRule, TooLarge, Usage
from waypost.host.live import Live
from waypost.host.sink import Connection
from waypost.model.errors import Invalid, WaypostError
from waypost.model.event_parts import Origin
from waypost.model.events import Decision
from waypost.model.limits import Limits
from waypost.model.signals import payload, signal_name

log = logging.getLogger(__name__)

SMALL = 64 * 1024
"""Bytes of a JSON body."""
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
T = TypeVar("T")
Door = Callable[[Request], Awaitable[Answer]]


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
        return Starlette(
            routes=[
                _route("/v1/status", self.status),
                _route("/v1/runs", self.runs),
                _route("/v1/runs/{run}", self.show),
                _route("/v1/runs/{run}/events", self.events),
                _route("/v1/runs/{run}/why", self.why),
                _route("/v1/why", self.why_all),
                _route("/v1/deployments/{name}/why", self.why_deployment),
                _route("/v1/queue/{mail:path}/why", self.why_mail),
                _route("/v1/verify", self.verify),
                _route("/v1/approvals", self.approvals),
                Route("/v1/approvals/follow", self.follow, methods=["GET"]),
                _route("/v1/queue/hold", self.on_hold),
                _route("/v1/queue/rejected", self.rejected),
                _route("/v1/schedules", self.schedules),
                _route("/v1/queue/hold/{mail:path}/release", self.release, "POST"),
                _route("/v1/queue/hold/{mail:path}/reject", self.reject, "POST"),
                _route("/v1/mail/{address:path}", self.mail, "POST", status=202),
                _route("/v1/runs/{run}/cancel", self.cancel, "POST"),
                _route("/v1/runs/{run}/signals/{name:path}", self.signal, "POST"),
                _route("/v1/runs/{run}/answer", self.answer, "POST"),
                _route("/v1/runs/{run}/resume", self.resume, "POST"),
                _route("/v1/deployments/{name}/resume", self.resume_deployment, "POST"),
                _route("/v1/deployments/{name}/reset", self.reset_deployment, "POST"),
                _route("/v1/deployments/{name}", self.deployment),
                _route("/v1/deployments/{name}/drain", self.drain_deployment, "POST"),
                _route("/v1/deployments/{name}/recycle", self.recycle_deployment, "POST"),
                _route("/v1/deployments/{name}/seal", self.seal, "POST"),
                _route("/v1/deploy", self.deploy, "POST"),
                *self._more,
            ],
            exception_handlers={
                WaypostError: _problem,
                HTTPException: _not_found,
                ClientDisconnect: _gone,
                Exception: _broken,
            },
        )

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
        """All runs, newest first; ``?limit=``."""
        limit = min(number(request, "limit", source.LIST), source.LIST)
        return await in_thread(source.runs, self._live.everything(), limit)

    async def show(self, request: Request) -> Answer:
        """One run with its timeline."""
        return await in_thread(source.show, self._live.everything(), request.path_params["run"])

    async def events(self, request: Request) -> Answer:
        """A page of one run's stored events; ``?after=`` a seq."""
        after = number(request, "after", 0)
        return await in_thread(source.events, self._live.everything(), request.path_params["run"], after)

    async def why(self, request: Request) -> Answer:
        """What one run waits on."""
        return await in_thread(reasons.of_run, self._live.everything(), request.path_params["run"])

    async def why_deployment(self, request: Request) -> Answer:
        """What one deployment waits for."""
        return await in_thread(reasons.of_deployment, self._live.everything(), request.path_params["name"])

    async def why_mail(self, request: Request) -> Answer:
        """Why a mail has no run."""
        return await in_thread(reasons.of_mail, self._live.everything(), request.path_params["mail"])

    async def why_all(self, _request: Request) -> Answer:
        """What every deployment waits for, those first that need somebody."""
        return await in_thread(reasons.of_all, self._live.everything())

    async def approvals(self, _request: Request) -> Answer:
        """What runs ask of people."""
        return await in_thread(source.approvals, self._live.everything())

    async def follow(self, _request: Request) -> Response:
        """Be the host's sink: what is open, then what opens and closes, a line of JSON each, until either side ends."""
        return self._audience.told(Connection(self._sinks).lines())

    async def on_hold(self, _request: Request) -> Answer:
        """Mails on hold."""
        return await in_thread(queued.on_hold, self._live.everything())

    async def rejected(self, _request: Request) -> Answer:
        """Mails that were rejected after they had been accepted."""
        return await in_thread(queued.rejected, self._live.everything())

    async def schedules(self, request: Request) -> Answer:
        """Cron schedules; ``?deployment=`` those of one, ``?count=`` so many ticks of each."""
        from waypost.host import schedules  # it loads the calendar; a host without schedules has no use for it

        count = min(number(request, "count", 1), schedules.MOST)
        name = request.query_params.get("deployment")
        ask = functools.partial(schedules.listed, name=name, count=count)
        return await in_thread(ask, self._live.everything(), time.time_ns() // 1_000_000)

    async def verify(self, _request: Request) -> Answer:
        """Check every repository."""
        return await in_thread(self._verify)

    # --- writing -----------------------------------------------------------------------------------------------------

    async def mail(self, request: Request) -> Answer:
        """Accept a mail; the answer is durable."""
        async with self._bodies.whole(request, self._limits.mail, "the mail") as raw:
            return await in_thread(self._live.deliver, request.path_params["address"], raw)

    async def cancel(self, request: Request) -> Answer:
        """Ask for a run's end, as the operator, or as an administrator, whichever the kernel says."""
        async with self._bodies.whole(request, SMALL, "the request") as raw:
            reason = _decoded(raw, Wish).reason.strip()
        if not reason or len(reason.encode()) > COMMENT:
            raise Usage(f"a reason is some text of at most {COMMENT} bytes: it is recorded")
        origin: Origin = "hub-admin" if request.scope["waypost.admin"] else "supervisor-operator"
        user = request.scope["waypost.user"]
        return await in_thread(self._live.cancel, request.path_params["run"], reason, origin, user)

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
            decided = _decoded(raw, Decided)
        if len(decided.comment.encode()) > COMMENT:
            raise TooLarge("the comment", COMMENT)
        decision = Decision(
            approved=decided.approved, by=request.scope["waypost.user"], text=decided.comment, via="cli"
        )
        return await in_thread(self._live.answer, request.path_params["run"], decided.call, decision)

    async def resume(self, request: Request) -> Answer:
        """Let a paused run go on, as the operator."""
        async with self._bodies.whole(request, SMALL, "the request"):
            return await in_thread(self._live.resume, request.path_params["run"], request.scope["waypost.user"])

    async def resume_deployment(self, request: Request) -> Answer:
        """Let a held deployment go on, as the operator."""
        async with self._bodies.whole(request, SMALL, "the request"):
            name, user = request.path_params["name"], request.scope["waypost.user"]
            return await in_thread(self._live.resume_deployment, name, user)

    async def reset_deployment(self, request: Request) -> Answer:
        """Let a crash-looping deployment have a child again, as the operator."""
        async with self._bodies.whole(request, SMALL, "the request"):
            name, user = request.path_params["name"], request.scope["waypost.user"]
            return await in_thread(self._live.reset_deployment, name, user)

    async def drain_deployment(self, request: Request) -> Answer:
        """Let what executes come to rest, then hold the deployment, as the operator."""
        async with self._bodies.whole(request, SMALL, "the request") as raw:
            how = _decoded(raw, How) if raw else How()
        name, user = request.path_params["name"], request.scope["waypost.user"]
        return await in_thread(functools.partial(self._live.drain_deployment, name, user, end=how.end))

    async def recycle_deployment(self, request: Request) -> Answer:
        """Give a deployment a fresh process, as the operator."""
        async with self._bodies.whole(request, SMALL, "the request") as raw:
            wanted = _decoded(raw, Wanted)
        if len(wanted.reason.encode()) > REASON:
            raise TooLarge("the reason", REASON)
        reason = f"{request.scope['waypost.user']}: {wanted.reason or 'no reason given'}"
        return await in_thread(self._live.recycle_deployment, request.path_params["name"], reason)

    async def seal(self, request: Request) -> Answer:
        """Bring all of a deployment onto its branch, for stock git to read."""
        async with self._bodies.whole(request, SMALL, "the request"):
            return await in_thread(self._live.seal, request.path_params["name"])

    async def deploy(self, request: Request) -> Answer:
        """Run what lies at a path of this machine from now on; the body is a ``Place``."""
        async with self._bodies.whole(request, SMALL, "the request") as raw:
            return await in_thread(self._deploy, _decoded(raw, Place).path)

    async def release(self, request: Request) -> Answer:
        """Let a mail in from hold."""
        async with self._bodies.whole(request, SMALL, "the request"):
            return await in_thread(self._live.release, request.path_params["mail"])

    async def reject(self, request: Request) -> Answer:
        """Reject a mail on hold."""
        async with self._bodies.whole(request, SMALL, "the request"):
            return await in_thread(self._live.reject, request.path_params["mail"])


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run what waits for actors or disks in a thread of its own: the loop serves others meanwhile."""
    return await anyio.to_thread.run_sync(functools.partial(function, *arguments))


def _route(path: str, door: Door, method: str = "GET", *, status: int = 200) -> Route:
    async def endpoint(request: Request) -> Response:
        return _json(await door(request), status)

    return Route(path, endpoint, methods=[method])


def _json(answer: Answer, status: int) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


def _decoded(raw: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Usage(f"the body can't be read: {bad}") from None


def number(request: Request, name: str, default: int) -> int:
    """A number from the query. Raises Usage."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 15:  # noqa: PLR2004 - any seq fits
        raise Usage(f"{name}={text[:40]!r} is no number")
    return int(text)


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
    return _json(problem, _STATUS.get(problem.code, 409))


def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path[:200]} is no door of this API"
    return _json(Problem(code="usage", message=what), error.status_code)


def _gone(_request: Request, _error: Exception) -> Response:
    return _json(Problem(code="usage", message="the request broke off"), 400)


def _broken(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _json(Problem(code="broken", message="the host failed on this request; its log says how"), 500)
