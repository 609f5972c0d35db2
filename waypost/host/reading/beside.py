"""Reading all of a data directory while a host runs: what it hosts is asked of it, the rest is read from the disk.

A data directory may hold more deployments than the present host runs, and one that it runs may be stopped or down.
Nobody writes to those, so they are read as without a host; a list that left them out, or a run that "nobody has",
would be wrong.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from substrate.messages import Approval, Kept, LogPage, Planned, RejectedPage, RunLine
from waypost.host.errors import NotNow
from waypost.host.reading.explain import LeftOut, Situation
from waypost.host.reading.offline import Offline
from waypost.host.reading.source import Source
from waypost.model.ids import RunId

A = TypeVar("A")


class Beside:
    """A ``Source`` for one request. ``resting`` reads what lies on the disk, without what is hosted.

    ``left_out``: why the host doesn't run what it was to run, by name.
    """

    def __init__(
        self,
        hosted: Source,
        resting: Callable[[Collection[str]], Offline],
        left_out: Mapping[str, LeftOut] = MappingProxyType({}),
    ) -> None:
        self._hosted, self._open, self._left_out = hosted, resting, left_out

    def situations(self) -> tuple[Situation, ...]:
        """Every deployment, those that are hosted first."""
        resting = (
            replace(each, beside=True, left_out=self._left_out.get(each.name)) for each in self._resting.situations()
        )
        return (*self._by_name.values(), *resting)

    def runs(self, deployment: str, limit: int, before: RunId | None = None) -> tuple[RunLine, ...]:
        """Runs of a deployment, newest first."""
        return self._ask(deployment, lambda source: source.runs(deployment, limit, before))

    def page(self, deployment: str, run: RunId, after: int) -> LogPage | None:
        """Events of a run after a seq."""
        return self._ask(deployment, lambda source: source.page(deployment, run, after))

    def approvals(self, deployment: str) -> tuple[Approval, ...]:
        """Open approvals, oldest run first."""
        return self._ask(deployment, lambda source: source.approvals(deployment))

    def on_hold(self, deployment: str, limit: int) -> tuple[Kept, ...]:
        """Mails on hold, oldest first."""
        return self._ask(deployment, lambda source: source.on_hold(deployment, limit))

    def rejected(self, deployment: str, cursor: tuple[int, int] | None) -> RejectedPage:
        """Mails that were rejected, a page."""
        return self._ask(deployment, lambda source: source.rejected(deployment, cursor))

    def schedules(self, deployment: str) -> tuple[Planned, ...]:
        """The cron schedules of a deployment."""
        return self._ask(deployment, lambda source: source.schedules(deployment))

    def _ask(self, deployment: str, question: Callable[[Source], A]) -> A:
        if deployment in self._by_name:
            try:
                return question(self._hosted)
            except NotNow:
                pass  # it is stopped or down, so nobody has its repository open
        return question(self._resting)

    @cached_property
    def _by_name(self) -> dict[str, Situation]:
        return {each.name: each for each in self._hosted.situations()}

    @cached_property
    def _resting(self) -> Offline:
        return self._open(self._by_name)
