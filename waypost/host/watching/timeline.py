"""The live timeline: a watcher of every run that writes one line an event, and one when a deployment's state changes.

It is told durable facts only; what it writes with is the command line's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from actors.describing import Description
from actors.messages import Kin, Seen, SeenProgress, SeenQueued, StateChanged
from waypost.acting import Clock, Next, Ref
from waypost.host.reading.narrate import Narrator, printable
from waypost.model import events as ev
from waypost.model.ids import Deployment, RunId
from waypost.model.times import Now, stamp
from waypost.shell import Shell

TimelineMessage: TypeAlias = Seen | SeenProgress | SeenQueued | StateChanged
_NAME = 14
"""Of a run's id, as far as a line has room: its ordinal and a part of its random."""


@dataclass(frozen=True, slots=True)
class Say:
    """Effect: one line. ``at`` is ISO 8601 UTC."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Narrate:
    """Effect: one line, which tells an event of a run."""

    deployment: Deployment
    run: RunId
    event: ev.AnyEvent
    child: Kin | None = None


@dataclass(frozen=True, slots=True)
class Watching:
    """What was said last of each deployment: (state, reason)."""

    said: Mapping[Deployment, tuple[str, str]] = field(default_factory=dict)


def advance(state: Watching, message: TimelineMessage, now: Now) -> Next[Watching]:
    """One line for what was seen."""
    match message:
        case Seen():
            effect: Say | Narrate = Narrate(message.deployment, message.run, message.recorded.event, message.child)
        case SeenProgress():
            effect = Say(stamp(now.wall), f"{message.deployment} {short(message.run)}  … {printable(message.text)}")
        case SeenQueued():
            sender = f" from {printable(message.sender)}" if message.sender else ""  # a tick has none
            mail = f"mail {message.arrival}{sender}: {printable(message.subject)}"
            effect = Say(stamp(now.wall), f"{message.deployment} {short(message.run)}  {mail}")
        case StateChanged(description):
            now_said = (description.state, description.reason)
            if state.said.get(description.name) == now_said:
                return Next(state)
            state = Watching({**state.said, description.name: now_said})
            reason = f": {printable(description.reason)}{_last_words(description)}" if description.reason else ""
            generation = f" (generation {description.generation})" if description.state == "running" else ""
            effect = Say(stamp(now.wall), f"{description.name} is {description.state}{generation}{reason}")
        case _:
            assert_never(message)
    return Next(state, (effect,))


def _last_words(description: Description) -> str:
    """Of the child whose end is being told; the rest of what it wrote is in its log, and in `why`."""
    exited = description.exited
    if exited is None or not exited.reason.stderr or description.state not in {"backing-off", "down"}:
        return ""
    return f"; at last it wrote: {printable(exited.reason.stderr[-1])}"


def short(run: RunId) -> str:
    """A run's id in the width of a line; enough to be typed as a prefix."""
    return run[: run.rindex("_") + 5].ljust(_NAME)


class TimelineActor(Shell):
    """Writes with ``say``: (ISO 8601 UTC, text); it may not fail."""

    def __init__(
        self, say: Callable[[str, str], None], *, clock: Clock, parent: Ref | None = None, incarnation: int = 1
    ) -> None:
        super().__init__("timeline", Watching(), advance, clock=clock, parent=parent, incarnation=incarnation)
        self._say = say
        self._narrators: dict[RunId, Narrator] = {}

    def perform(self, effect: Any) -> None:
        """Write a line; of a run that began before this host, as far as its names are known."""
        match effect:
            case Say():
                self._say(effect.at, effect.text)
            case Narrate():
                narrator = self._narrators.setdefault(effect.run, Narrator())
                said = narrator.tell(effect.event, effect.child)
                self._say(effect.event.at, f"{effect.deployment} {short(effect.run)}  {said}")
                if not narrator.needed:
                    del self._narrators[effect.run]
            case _:
                super().perform(effect)
