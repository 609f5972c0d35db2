"""``docs/lifecycle.md``: what each state of a deployment does with what it may be asked from outside.

Asked of the decision itself, state by state: the page can't say anything else than what happens.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from actors.credentials import DeliverCredentials, DeliverSources
from actors.draining import Recycle
from actors.errors import ActorsError
from actors.logic.supervisor.effects import Pass
from actors.logic.supervisor.states import Ending
from actors.logic.supervisor.words import describe
from actors.messages import Describe, Forward, Start, Stop
from substrate.messages import (
    BeginGeneration,
    Done,
    DrainDeployment,
    HoldDeployment,
    LatchDeployment,
    NoteDrain,
    ReadLive,
    ReadRest,
    ReadRuns,
    ReadSealed,
    Refused,
    ResetDeployment,
    ResumeDeployment,
    Withheld,
)
from waypost.acting import Asked, Reply
from waypost.cli.bounds import MAY_BE_SET
from waypost.model.limits import DEFAULT
from waypost.testing.supervision import CREDENTIALS, MAIL, SETUP, SOURCES, STATES, step

_OWN = (BeginGeneration, HoldDeployment, LatchDeployment, NoteDrain, ReadLive, ReadRest, ReadSealed)
"""What a supervisor asks the repository by itself."""
_TOKEN = 77
"""Of whoever asks; no sample state waits for it."""
PUBLIC: dict[str, Any] = {
    "Start": Start(),
    "Stop": Asked(_TOKEN, Stop()),
    "Stop, patiently": Asked(_TOKEN, Stop(20.0)),
    "recycle": Asked(_TOKEN, Recycle("leaks")),
    "drain": Asked(_TOKEN, Forward(DrainDeployment("ann"))),
    "Describe": Asked(_TOKEN, Describe()),
    "a mail": Asked(_TOKEN, Forward(MAIL)),
    "a question": Asked(_TOKEN, Forward(ReadRuns())),
    "resume": Asked(_TOKEN, Forward(ResumeDeployment("ann"))),
    "reset": Asked(_TOKEN, Forward(ResetDeployment("ann"))),
    "credentials": Asked(_TOKEN, DeliverCredentials(CREDENTIALS)),
    "sources": Asked(_TOKEN, DeliverSources(SOURCES)),
}
"""What may be asked of a supervisor from outside, by the name that the page gives it."""

_HEAD = """\
# The life of a deployment

Its supervisor is in one of these states; `waypost why` and the API say which, in the words of the second column. All
arrows are in `supervisor.md`. Made of `actors/logic/`; `python -m waypost.testing.diagrams docs` makes it anew.

**passed on**: to the repository, which carries it out or refuses it by a rule, in the order in which it came. **kept**:
until the repository is open, in order; credentials and sources until there is a process. **delivered**: to the process.
**withheld**: nothing was done, try again (exit 75, 503, `Withheld`). **→ state**: what follows; a stop is answered when
all have ended. An empty field: ignored, on purpose.
"""
_REFUSED = """\
## What the repository refuses

| asked | precondition | refused with |
|---|---|---|
| resume DEPLOYMENT | it is held, or being drained | `not-held` |
| reset DEPLOYMENT | it is crash-looping | `not-latched` |
| recycle | it runs, and nothing else is under way | `not-running`, `recycling`, `draining`, `retiring`, `held` |
| drain DEPLOYMENT | it isn't held, crash-looping or being drained | `held`, `latched`, `draining`, `retiring` |
| a child's generation | it isn't crash-looping | `latched` |
| credentials, sources | it has a process that listens, or may have one without somebody's doing | `no-child` |
| anything for a deployment that isn't there | | `no-such-deployment` |

Refused is exit 1 and 409 (`RefusedByRule`), a deployment that isn't there exit 64 and 404.
"""


def page() -> str:
    """The page."""
    return "\n".join((_HEAD, *_states(), "", *_withheld(), _REFUSED, *_bounds(), ""))


def outcome(state: Any, message: Any) -> str:
    """What a state does with a message, in a word or two."""
    following = step(state, message)
    words = list(dict.fromkeys(filter(None, map(_word, following.effects))))
    target = following.state
    if type(target) is not type(state):
        words.append(f"→ {type(target).__name__}")
    elif not words and target != state:
        words.append("kept" if isinstance(message, Asked) and isinstance(message.body, Forward) else "noted")
    return ", ".join(words)


def _word(effect: Any) -> str:  # noqa: PLR0911 - one return per word
    match effect:
        case Reply(token=token) if token != _TOKEN:
            return ""  # to somebody who had asked before
        case Reply(value=Withheld()):
            return "withheld"
        case Reply(value=Refused(code)):
            return f"refused `{code}`"
        case Reply(value=ActorsError() as error):
            return f"refused ({type(error).__name__})"
        case Reply(value=Done(value=bool() as now)):
            return "delivered" if now else "kept"
        case Reply():
            return "answered"
        case Pass(what=what) if not isinstance(what, _OWN):
            return "passed on"
        case _:
            return ""


def _states() -> Iterator[str]:
    yield f"| state | is said as | {' | '.join(PUBLIC)} |"
    yield f"|---|---|{'---|' * len(PUBLIC)}"
    known: set[str] = set()
    for state in STATES:
        row = f"| {_named(state)} | {_said(state)} | {' | '.join(outcome(state, each) for each in PUBLIC.values())} |"
        if row not in known:
            known.add(row)
            yield row


def _named(state: Any) -> str:
    then = f" ({type(state.then).__name__})" if isinstance(state, Ending) else ""
    return f"{type(state).__name__}{then}"


def _said(state: Any) -> str:
    told = describe(SETUP, state)
    return f"{told.state} ({told.code})" if told.code else told.state


def _withheld() -> Iterable[str]:
    reasons = dict.fromkeys(
        f"- {_named(state)}: {effect.value.reason}"
        for state in STATES
        for effect in step(state, PUBLIC["a mail"]).effects
        if isinstance(effect, Reply) and isinstance(effect.value, Withheld)
    )
    return ("Mail is withheld where nothing can run again by itself or by a verb, with the reason:", "", *reasons, "")


def _bounds() -> Iterator[str]:
    yield from (
        "## Bounds",
        "",
        "Each may be set for one host: `waypost run FILE --limit NAME=VALUE`, as often as needed.",
        "",
    )
    yield from ("| bound | as a rule | is |", "|---|---|---|")
    for name, meaning in MAY_BE_SET.items():
        value = getattr(DEFAULT, name)
        yield f"| `{name}` | {value if isinstance(value, int) else f'{value:g} s'} | {meaning} |"
