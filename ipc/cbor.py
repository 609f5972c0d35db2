"""The strict CBOR of the wire: one value has one form, and only plain values have one (RFC 8949, design §8).

Plain: None, bool, integers of 64 bits, finite doubles, text, bytes, arrays, and maps with text or byte keys.
Whatever the bytes, decoding ends in a value or in BadCbor; no length is believed that the bytes don't cover,
and no tag is ever interpreted.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Never

import cbor2
import msgspec

from ipc.errors import BadCbor, NotEncodable
from waypost.model.limits import DEFAULT


class _NoTags(Mapping[int, "Callable[..., Never]"]):
    """A decoder table that has an entry for every tag, and the entry is a refusal."""

    def __getitem__(self, tag: int) -> Never:
        raise BadCbor(f"tag {tag}")

    def __iter__(self) -> Iterator[Never]:
        return iter(())

    def __len__(self) -> int:
        return 0


_NO_TAGS = _NoTags()
_LEAVES = frozenset((type(None), bool, int, str, bytes))

# Simple values (e0 to f3, f8), `undefined` (f7) and the short floats, of which only the non-finite ones survive
# re-encoding (f9), begin with one of these. Such a byte may also be text or data: it is a reason to look, no verdict.
_SUSPECT = re.compile(rb"[\xe0-\xf3\xf7-\xf9]")


def decode(data: bytes, *, nesting: int = DEFAULT.nesting) -> object:
    """Decode exactly one item; ``nesting`` is how deep arrays and maps may lie in each other. Raises BadCbor.

    The value is encoded again and compared, so a second spelling of anything (long lengths, short floats, trailing
    bytes) is refused. Costs about 20 µs for 1 KB; a hostile 2 MiB of one-byte items costs below a second.
    """
    value = _load(data, nesting)
    if cbor2.dumps(value) != data:
        raise BadCbor("not in its one canonical form, or followed by more")
    return value


def encode(value: object, *, nesting: int = DEFAULT.nesting) -> bytes:
    """Encode a plain value, or anything that msgspec turns into one (structs, dataclasses, enums, datetimes, …).

    What it returns is what `decode` takes. Raises NotEncodable.
    """
    try:
        data = cbor2.dumps(msgspec.to_builtins(value, builtin_types=(bytes,)))
        _load(data, nesting)
    except BadCbor as failure:
        raise NotEncodable(failure.reason) from None
    except (TypeError, ValueError, RecursionError, cbor2.CBOREncodeError) as failure:
        raise NotEncodable(str(failure)) from failure
    return data


def _load(data: bytes, nesting: int) -> object:
    try:
        value: object = cbor2.loads(
            data,
            semantic_decoders=_NO_TAGS,
            max_depth=nesting,
            allow_indefinite=False,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
        )
    except cbor2.CBORDecodeError as failure:
        cause = failure.__cause__
        reason = cause.reason if isinstance(cause, BadCbor) else str(failure)
        raise BadCbor(reason) from None
    if _SUSPECT.search(data):
        _look(value)
    return value


def _look_into(items: Collection[object]) -> None:
    if not _LEAVES.issuperset(map(type, items)):  # a page of a log is thousands of byte strings
        for item in items:
            _look(item)


def _look(value: object) -> None:
    """Walk the value and refuse what isn't plain. Its depth is bounded by now."""
    match value:
        case dict():
            _look_into(value.values())
        case list():
            _look_into(value)
        case float():
            if not math.isfinite(value):
                raise BadCbor(f"the number {value}")
        case None | bool() | int() | str() | bytes():
            pass
        case _:
            raise BadCbor(f"the simple value {value!r}")
