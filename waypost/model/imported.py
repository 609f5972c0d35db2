"""Where an imported run comes from, as its first event says it for ever."""

from typing import Annotated

import msgspec


class Imported(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run of another system's repository. ``commit`` is the one it was read at, 40 hex digits."""

    system: Annotated[str, msgspec.Meta(max_length=100)]
    run: Annotated[str, msgspec.Meta(max_length=1000)]
    """Its id there."""
    commit: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]
