"""The cron schedules that a workflow file declares, in its order, and what they were written above."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, UnsetType

from waypost.authoring.errors import Misdeclared
from waypost.model.errors import Invalid
from waypost.model.schedule import MOST, CatchUp, Gap, Overlap, Repeat, Schedule, schedule


class Schedules:
    """What ``@workflow.cron`` was called with; ``workflow``: its name, for texts."""

    def __init__(self, workflow: str) -> None:
        self._workflow = workflow
        self._made: list[Schedule] = []
        self._above: list[tuple[Schedule, Callable[..., Any]]] = []

    def add(
        self,
        expression: str,
        *,
        tz: str,
        name: str | None,
        gap: Gap,
        repeat: Repeat,
        catch_up: CatchUp,
        overlap: Overlap,
    ) -> Schedule:
        """Note another one. Raises Misdeclared for one that can't be, or can't be told from an earlier one."""
        try:
            made = schedule(expression, tz=tz, name=name, gap=gap, repeat=repeat, catch_up=catch_up, overlap=overlap)
        except Invalid as bad:
            raise Misdeclared(f"{self._workflow}: @cron: {bad}", hint=bad.hint) from None
        if any(each.id == made.id for each in self._made):
            raise Misdeclared(
                f"{self._workflow} has two schedules called {made.id}; their ticks are told apart by name",
                hint="give each a name of its own: cron(…, name='morning')",
            )
        if len(self._made) == MOST:
            raise Misdeclared(f"{self._workflow} has more than {MOST} schedules")
        self._made.append(made)
        return made

    def above(self, made: Schedule, function: Callable[..., Any]) -> None:
        """Note what a schedule was written above."""
        self._above.append((made, function))

    def declared(self, run: Callable[..., Any]) -> tuple[Schedule, ...] | UnsetType:
        """All of them. Raises Misdeclared where one was written above anything but the run function, ``run``."""
        for made, function in self._above:
            if function is not run:
                raise Misdeclared(
                    f"{self._workflow}: @cron({made.expression!r}) is above {_named(function)},"
                    f" but a tick begins a run: it is {run.__name__} that is called",
                    hint=f"put it above {run.__name__}, and let that look at mail.tick.schedule",
                )
        return tuple(self._made) or UNSET


def _named(function: object) -> str:
    return str(getattr(function, "__name__", None) or repr(function)[:80])
