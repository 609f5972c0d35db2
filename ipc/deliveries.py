"""What a child is given to work with beside its runs: credentials, and the model sources that use them.

Both are delivered over the signed control channel alone, each as a whole in the place of the one before; ``serial``
rises with every delivery, so that of two that cross on their way the newer one holds. There is no hash of the values:
the frame's signature covers them, and a hash of a short secret is as good as the secret.

Promise: no repr of a delivery shows a value.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from ipc.ready import Count, Message

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Place = Annotated[str, msgspec.Meta(max_length=2000)]
Handles = Annotated[tuple[Name, ...], msgspec.Meta(max_length=256)]
VALUE = 64 * 1024
"""Bytes of one credential at most."""
DELIVERY = 1024 * 1024
"""Bytes of all values of one delivery at most: they travel in one frame."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a model can be had. ``credential``: the handle of the secret that it wants; empty for none."""

    id: Name
    provider: Name
    model: Name
    base_url: Place = ""
    credential: Annotated[str, msgspec.Meta(max_length=64)] = ""


class CredentialsUpdated(Message, frozen=True, kw_only=True, tag="credentials-updated"):
    """Which step may read what (``bindings``: step to handles), and the values (``materials``: handle to bytes)."""

    serial: Count
    bindings: Annotated[dict[Name, Handles], msgspec.Meta(max_length=1000)]
    materials: Annotated[dict[Name, Annotated[bytes, msgspec.Meta(max_length=VALUE)]], msgspec.Meta(max_length=256)]

    def __repr__(self) -> str:
        return f"CredentialsUpdated(serial={self.serial}, handles={sorted(self.materials)})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("serial", self.serial), ("handles", sorted(self.materials))]


class SourcesUpdated(Message, frozen=True, kw_only=True, tag="sources-updated"):
    """The model sources of a deployment, in order, the default first; their ids are unique."""

    serial: Count
    sources: Annotated[tuple[Source, ...], msgspec.Meta(max_length=64)]

    def __post_init__(self) -> None:
        """Raises ValueError, which decoding reports as a message that can't be."""
        ids = [source.id for source in self.sources]
        if len(set(ids)) != len(ids):
            raise ValueError("two sources of one id")


def same(one: CredentialsUpdated, other: CredentialsUpdated) -> bool:
    """Whether two deliveries give the same."""
    return one.bindings == other.bindings and one.materials == other.materials


def handles_of(bindings: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """All handles that any step may read, sorted."""
    return tuple(sorted({handle for handles in bindings.values() for handle in handles}))
