"""Who may do what with a repository as a whole (storage §4): the matrix of principals and actions, as data.

Which event a writer may write is said in ``principals``, and of whole commits in ``rules``. There is no row for a user
with a token: no door takes one, so nobody could say whose it is. Whoever reaches the socket or the folder owns it.
"""

from typing import Literal, TypeAlias, get_args

from substrate.principals import Name

Action: TypeAlias = Literal["init", "write", "receive-pack", "create-pack", "resolve"]
"""Make a repository; commit; take in a pack that was pushed; give out a pack; read a reference or a commit."""
Who: TypeAlias = Name | Literal["reader"]

EVERY: tuple[Action, ...] = get_args(Action)

_READ: frozenset[Action] = frozenset({"create-pack", "resolve"})
_COMMIT: frozenset[Action] = frozenset({"write"})
ACTIONS: dict[Who, frozenset[Action]] = {
    "hub": frozenset(EVERY),
    "supervisor": frozenset(EVERY),
    "workflow-process": _COMMIT | _READ,
    "reader": _READ,
}
"""By principal. Nobody's push is taken in by a host: ``receive-pack`` is what the two may do who could grant it."""

AUTHORS = frozenset(who for who, actions in ACTIONS.items() if "write" in actions)
"""Who may be a commit's author. A reader writes through the host, which is the author then."""
