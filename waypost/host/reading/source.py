"""What the reading verbs read from, a running host or the repositories themselves, and the answers made of it.

Both ways give the same records, so that a verb says the same with and without a host.
"""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import msgspec
from msgspec import UNSET

from substrate.errors import RepositoryGone
from substrate.messages import Approval, Kept, LogPage, Planned, RejectedPage, RunLine
from waypost.host.answers.records import (
    ApprovalShown,
    EventsPage,
    OpenApprovals,
    RunShown,
    Unread,
)
from waypost.host.errors import AmbiguousRun, NoSuchRun
from waypost.host.reading import explain, run_why
from waypost.host.reading.explain import Situation
from waypost.model.errors import Invalid, WaypostError
from waypost.model.ids import RunId, parse_run_id
from waypost.model.times import stamp

T = TypeVar("T")

_BRIEF = 60
_WAITS = 2
LIST = 1000
"""Runs of one deployment that are listed."""


class Source(Protocol):
    """Where answers come from. Raises HostError and SubstrateError."""

    def situations(self) -> tuple[Situation, ...]:
        """Every deployment."""
        ...

    def runs(self, deployment: str, limit: int, before: RunId | None = None) -> tuple[RunLine, ...]:
        """Runs of a deployment, newest first, queued ones among them; with ``before`` only those older than that."""
        ...

    def page(self, deployment: str, run: RunId, after: int) -> LogPage | None:
        """Events of a run after a seq; None when the deployment has no event of it."""
        ...

    def approvals(self, deployment: str) -> tuple[Approval, ...]:
        """The open approvals of a deployment, oldest run first."""
        ...

    def on_hold(self, deployment: str, limit: int) -> tuple[Kept, ...]:
        """Mails of a deployment that are on hold, oldest first."""
        ...

    def rejected(self, deployment: str, cursor: tuple[int, int] | None) -> RejectedPage:
        """Mails of a deployment that were rejected within the horizon, a page from where the one before ended."""
        ...

    def schedules(self, deployment: str) -> tuple[Planned, ...]:
        """The cron schedules of a deployment, in the order declared, and how far each has come."""
        ...


def readable(source: Source, ask: Callable[[str], T]) -> tuple[dict[str, T], tuple[Unread, ...]]:
    """What is known of each deployment, by name: one that is down hides none of the others, but is named.

    Where none of them can be read, the error of the first is raised.
    """
    found: dict[str, T] = {}
    failures: dict[str, WaypostError] = {}
    for situation in source.situations():
        try:
            found[situation.name] = ask(situation.name)
        except WaypostError as failure:
            failures[situation.name] = failure
    if failures and not found:
        raise next(iter(failures.values()))
    return found, tuple(Unread(deployment=name, why=failure.message) for name, failure in failures.items())


def approvals(source: Source) -> OpenApprovals:
    """The answer of ``waypost approvals``."""
    addresses = {each.name: each.address for each in source.situations()}
    found, unread = readable(source, source.approvals)
    shown = tuple(approval_shown(name, addresses[name], each) for name, several in found.items() for each in several)
    return OpenApprovals(approvals=shown, unread=unread)


def approval_shown(deployment: str, address: str, approval: Approval) -> ApprovalShown:
    """An open approval as the API tells it."""
    return ApprovalShown(
        deployment=deployment,
        address=address,
        run=approval.run,
        call=approval.call,
        at=approval.at,
        title=approval.title,
        who=approval.who,
        request=approval.request,
        deadline=None if approval.deadline is None else stamp(approval.deadline),
        snapshot=UNSET if approval.snapshot is None else msgspec.Raw(approval.snapshot),
    )


def locate(source: Source, text: str) -> tuple[Situation, RunId]:
    """The run that is meant by an id or the beginning of one. Raises NoSuchRun, AmbiguousRun.

    Where a deployment can't be read, its error is raised, unless a whole id is found in another. One whose repository
    is gone has no run that could be meant, where another has.
    """
    whole_id = _as_id(text)
    # run_1 means run_1_…, never run_10_…
    beginning = text if text.count("_") > 1 else f"{text}_"
    found: list[tuple[Situation, RunId]] = []
    failures: list[WaypostError] = []
    gone: list[RepositoryGone] = []
    # Of thousands that sleep, the one that names it is looked into first.
    for situation in sorted(source.situations(), key=lambda each: whole_id not in each.live):
        try:
            if whole_id is not None and source.page(situation.name, whole_id, 0) is not None:
                return situation, whole_id
            lines = source.runs(situation.name, LIST)
        except RepositoryGone as failure:
            gone.append(failure)
            continue
        except WaypostError as failure:
            failures.append(failure)
            continue
        found += ((situation, line.run) for line in lines if line.run == text or line.run.startswith(beginning))
    if failures and (whole_id is None or not found):
        raise failures[0]  # the one that is meant, or a second one that begins alike, may be there
    match found:
        case [] if gone:
            raise gone[0]
        case []:
            raise NoSuchRun(text)
        case [one]:
            return one
        case several:
            raise AmbiguousRun(text, tuple(run for _, run in several))


def whole(source: Source, deployment: str, run: RunId) -> Iterator[bytes]:
    """Every stored event of a run, in order; none when it is queued."""
    after = 0
    while (page := source.page(deployment, run, after)) is not None and page.events:
        yield from page.events
        after += len(page.events)
        if after >= page.last:
            return


def show(source: Source, text: str) -> RunShown:
    """The answer of ``waypost show``."""
    situation, run = locate(source, text)
    return run_why.shown(explain.read(run, whole(source, situation.name, run)), situation)


def events(source: Source, text: str, after: int) -> EventsPage:
    """A page of the answer of ``waypost log``."""
    situation, run = locate(source, text)
    page = source.page(situation.name, run, after)
    raws = () if page is None else page.events
    return EventsPage(
        run=run,
        deployment=situation.name,
        events=tuple(msgspec.Raw(raw) for raw in raws),
        last=0 if page is None else page.last,
    )


def _as_id(text: str) -> RunId | None:
    try:
        return parse_run_id(text)
    except Invalid:
        return None
