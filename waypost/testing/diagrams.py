"""Pictures of the state machines, drawn from the code: every state is shown every message, and what happens is noted.

And the pages of the rule book and of a deployment's life, which are made of tables and decisions.

``python -m waypost.testing.diagrams DIRECTORY`` writes them; a test compares them with what is committed.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from substrate import rules
from waypost.acting import Next
from waypost.testing import childhood, dispatching, gating, gracing, lifecycle, supervision

LEGEND = """
In the table: a name is the state that follows, **·** means handled without leaving the state, and an empty field that
the message is ignored there on purpose.
"""


def by_type(state: Any) -> str:
    """A state is its class."""
    return type(state).__name__


def draw(
    title: str,
    words: str,
    states: Iterable[Any],
    messages: Mapping[str, Any],
    step: Callable[[Any, Any], Next[Any]],
    named: Callable[[Any], str] = by_type,
) -> str:
    """A page: a mermaid diagram of the arrows, then the whole grid of states and messages."""
    arrows: dict[tuple[str, str], list[str]] = {}
    columns: dict[str, list[str]] = {}
    for state in states:
        name = named(state)
        cells = columns.setdefault(name, ["" for _ in messages])
        for row, (label, message) in enumerate(messages.items()):
            following = step(state, message)
            target = named(following.state)
            if target != name:
                known = arrows.setdefault((name, target), [])
                if label not in known:
                    known.append(label)
                if target not in cells[row]:
                    cells[row] = f"{cells[row]}, {target}".strip("·, ")
            elif (following.effects or following.state != state) and not cells[row]:
                cells[row] = "·"
    lines = [f"# {title}", "", words, "", "```mermaid", "stateDiagram-v2"]
    lines += [f"    {source} --> {target}: {' / '.join(labels)}" for (source, target), labels in arrows.items()]
    lines += ["```", LEGEND, f"| message | {' | '.join(columns)} |", f"|---{'|---' * len(columns)}|"]
    lines += [
        f"| {label} | {' | '.join(cells[row] for cells in columns.values())} |" for row, label in enumerate(messages)
    ]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name to content, for each machine that is drawn."""
    return {
        "supervisor.md": draw(
            "The supervisor of a deployment",
            "Drawn from `actors/logic/supervisor/`; `python -m waypost.testing.diagrams docs` draws it anew.",
            supervision.STATES,
            supervision.MESSAGES,
            supervision.step,
        ),
        "child_process.md": draw(
            "The life of a child",
            "Drawn from `actors/logic/child/decision.py`; `python -m waypost.testing.diagrams docs` draws it anew.",
            childhood.STATES,
            childhood.MESSAGES,
            childhood.step,
        ),
        "dispatch_session.md": draw(
            "A run and the child: the session",
            "Drawn from `actors/logic/dispatch/session.py`; `python -m waypost.testing.diagrams docs` draws it anew.\n"
            "Away, Pending, Away, Opening is the way in: RunResumed is asked for, committed, durable.",
            dispatching.sessions(),
            dispatching.SESSION_MESSAGES,
            dispatching.apply,
            dispatching.session,
        ),
        "dispatch_child.md": draw(
            "The child, as dispatch has it",
            "Drawn from `actors/logic/dispatch/exits.py`; `python -m waypost.testing.diagrams docs` draws it anew.\n"
            "An exit that nobody expected is counted against the runs that were driven, before another child comes.",
            dispatching.children(),
            dispatching.CHILD_MESSAGES,
            dispatching.apply,
            dispatching.child,
        ),
        "dispatch_errand.md": draw(
            "A run's mail: the errand",
            "Drawn from `actors/logic/dispatch/queue.py`; `python -m waypost.testing.diagrams docs` draws it anew.",
            dispatching.errands(),
            dispatching.ERRAND_MESSAGES,
            dispatching.apply,
            dispatching.errand,
        ),
        "dispatch_grace.md": draw(
            "A run that is being cancelled",
            "Drawn from `actors/logic/dispatch/grace.py`; `python -m waypost.testing.diagrams docs` draws it anew.\n"
            "Its code has its time from when it was told, and its host so long to find a child that tells it.",
            gracing.graces(),
            gracing.GRACE_MESSAGES,
            gracing.apply,
            gracing.grace,
        ),
        "dispatch_barrier.md": draw(
            "The barrier before a run's start",
            "Drawn from `actors/logic/dispatch/barrier.py`; `python -m waypost.testing.diagrams docs` draws it anew.\n"
            "Only in Clear a run is given to the child; in TurnedAway one that a mail begins fails at once.",
            gating.gates(),
            gating.GATE_MESSAGES,
            gating.apply,
            gating.gate,
        ),
        "rules.md": rules.page(),
        "lifecycle.md": lifecycle.page(),
    }


if __name__ == "__main__":
    for page, text in pages().items():
        (Path(sys.argv[1]) / page).write_text(text, encoding="utf-8")
