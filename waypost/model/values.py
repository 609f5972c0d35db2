"""Values across the durable border: what a step returns is JSON in the log and comes back typed.

The rule: the caller always gets ``decode(encode(x))``, live and in replay, so a replay can't see anything else. A
value that this round trip would change is refused when the step returns it, with the path inside the value.
"""

import datetime as dt
import decimal
import enum
import hashlib
import math
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

import msgspec
import msgspec.inspect

from waypost.model.errors import WaypostError
from waypost.model.limits import DEFAULT

DEPTH = 200
"""Levels of nesting that a value may have; deeper ones would exhaust the stack of some reader."""

_SCALARS = (
    str,
    int,
    float,
    bytes,
    decimal.Decimal,
    dt.datetime,
    dt.date,
    dt.time,
    dt.timedelta,
    uuid.UUID,
    enum.Enum,
)
_EASY = frozenset((str, int, bool, type(None)))
_NAMES = frozenset((str,))


class ValueNotStorable(WaypostError, TypeError):
    """A value or annotation has no faithful JSON form.

    ``path``: the place inside the value, ``$`` being the whole (``$['a'][0].amount``); ``why``: what is wrong there.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path}: {why}",
            hint="return JSON-shaped values, and name dataclasses, Structs, tuples and Decimals in the annotation",
        )
        self.path = path
        self.why = why


class Stored(msgspec.Struct, frozen=True):
    """A value that survived: ``raw`` is its JSON for the log, ``value`` what the caller sees."""

    raw: bytes
    value: object


class Codec:
    """The way to JSON and back of one annotation.

    Made when a step is declared: an annotation that can't be decoded raises ValueNotStorable there, not in the
    middle of a run. ``where`` names the owner in that message.
    """

    def __init__(self, annotation: object, *, where: str = "$") -> None:
        try:
            self._decoder = msgspec.json.Decoder[Any](annotation)
            info = msgspec.inspect.type_info(annotation)
        except (TypeError, ValueError) as bad:
            raise ValueNotStorable(where, f"{annotation!r} can't be read back from JSON: {bad}") from None
        for foreign in _foreign(info):
            raise ValueNotStorable(
                where, f"{foreign.__name__} can't be read back from JSON; make it a dataclass or a msgspec.Struct"
            )

    def store(self, value: object, *, limit: int = DEFAULT.value, ordered: bool = False) -> Stored:
        """Take a value to JSON and back. Raises ValueNotStorable when it would change, or is over ``limit`` bytes.

        ``ordered``: the same bytes in every process, also of a set.
        """
        raw = _encode(value, limit, ordered=ordered)
        try:
            back = self._decoder.decode(raw)
        except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as bad:
            # TypeError and ValueError can come from a user's own __post_init__.
            raise ValueNotStorable("$", f"would not come back: {bad}") from None
        try:
            _same(value, back)
        except _Refusal as refusal:
            raise ValueNotStorable(refusal.path(), refusal.why) from None
        return Stored(raw, back)

    def load(self, raw: bytes | msgspec.Raw) -> object:
        """Read a recorded value. Raises ValueNotStorable when the annotation no longer fits it."""
        try:
            return self._decoder.decode(raw)
        except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as bad:
            raise ValueNotStorable("$", f"the recorded value doesn't fit the annotation: {bad}") from None


def returned_by(function: Callable[..., object]) -> Codec:
    """The codec of a function's return annotation; without one, of plain JSON. Raises ValueNotStorable."""
    return annotated(function, "return", where=f"{function.__qualname__}() -> …")


def annotated(function: Callable[..., object], name: str, *, where: str) -> Codec:
    """The codec of a parameter's annotation, or of what is returned. Raises ValueNotStorable, which says ``where``."""

    class Only:  # the other annotations may name what exists for the type checker alone
        __annotations__ = {name: getattr(function, "__annotations__", {}).get(name, Any)}

    carrier = Only()
    try:
        hints = get_type_hints(carrier, getattr(function, "__globals__", {}), include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as bad:
        raise ValueNotStorable(
            where, f"its annotation can't be resolved ({bad}); name a type that exists at run time, at module level"
        ) from None
    return Codec(hints[name], where=where)


def digest(value: object) -> str:
    """SHA-256 (hex) of a value's JSON in one fixed order, the same in every process.

    Raises ValueNotStorable for a value without a JSON form.
    """
    try:
        if not _flat(value):
            _check(value, set())
            raw = _ordered(value)
        else:
            raw = msgspec.json.encode(value, order="deterministic")
    except _Refusal as refusal:
        raise ValueNotStorable(refusal.path(), refusal.why) from None
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as bad:
        raise ValueNotStorable("$", str(bad)) from None
    return hashlib.sha256(raw).hexdigest()


# --- the walk ------------------------------------------------------------------------------------------------------


class _Refusal(Exception):
    """Unwinding from the spot to the root; each level adds its part of the path, so that good values pay nothing."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.parts: list[str] = []

    def path(self) -> str:
        return "$" + "".join(reversed(self.parts))


def _flat(value: object) -> bool:
    """Whether it is a dict of nothing that would have to be looked into: the arguments of most steps are."""
    return (
        type(value) is dict
        and _EASY.issuperset(map(type, value.values()))
        and all(type(each) is not str or each.isascii() for pair in value.items() for each in pair)
        and _NAMES.issuperset(map(type, value))
    )


def _ordered(value: object) -> bytes:
    # By way of builtins: the encoder itself refuses dicts with int keys where it is to put them in order.
    return msgspec.json.encode(msgspec.to_builtins(value, str_keys=True, order="deterministic"), order="deterministic")


def _encode(value: object, limit: int, *, ordered: bool = False) -> bytes:
    try:
        _check(value, set(), limit)
        raw = _ordered(value) if ordered else msgspec.json.encode(value)
    except _Refusal as refusal:
        raise ValueNotStorable(refusal.path(), refusal.why) from None
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as bad:
        raise ValueNotStorable("$", str(bad)) from None
    if len(raw) > limit:
        raise ValueNotStorable("$", f"{len(raw)} bytes of JSON; at most {limit} are kept")
    return raw


def _check(value: object, above: set[int], limit: int | None = None) -> None:
    """Refuse what JSON can't say, or what msgspec would say wrongly without a word (NaN becomes null)."""
    if value is None or isinstance(value, _SCALARS):
        _check_scalar(value, limit)
        return
    parts = _parts(value)
    if parts is None:
        raise _Refusal(f"a {type(value).__name__} has no JSON form")
    if id(value) in above:
        raise _Refusal("contains itself")
    if len(above) >= DEPTH:
        raise _Refusal(f"nested deeper than {DEPTH} levels")
    if isinstance(value, dict):
        for name in value:
            _check_scalar(name, limit)
    above.add(id(value))
    for key, part in parts:
        try:
            _check(part, above, limit)
        except _Refusal as refusal:
            refusal.parts.append(key())
            raise
    above.discard(id(value))


def _check_scalar(value: object, limit: int | None) -> None:
    match value:
        case str() | bytes() if limit is not None and len(value) > limit:
            raise _Refusal(f"{len(value)} long; a value may have {limit} bytes of JSON")
        case str() if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _Refusal("contains a lone surrogate, which UTF-8 can't carry") from None
        case float() if not math.isfinite(value):
            raise _Refusal(f"{value!r} has no JSON form")
        case decimal.Decimal() if not value.is_finite():
            raise _Refusal(f"{value!r} has no JSON form")
        case dt.datetime() if value.tzinfo is None:
            raise _Refusal("a datetime without a time zone is ambiguous; use datetime.now(UTC) or the like")
        case _:
            pass


def _same(mine: object, back: object) -> None:
    """Refuse a value that came back different; equality alone won't do, True == 1 and (1,) isn't said by JSON."""
    if type(mine) is not type(back):
        if isinstance(mine, int) and not isinstance(mine, bool) and isinstance(back, float) and mine == back:
            return  # `-> float` that returned 3: the workflow gets 3.0, always
        raise _Refusal(
            f"is a {type(mine).__name__} and would come back as a {type(back).__name__}; say so in the annotation"
        )
    if isinstance(mine, Mapping) and isinstance(back, Mapping):
        _same_keys(mine, back)
        pairs: Iterator[tuple[_Key, object, object]] = ((_item(key), value, back[key]) for key, value in mine.items())
    elif isinstance(mine, set | frozenset):
        if not isinstance(back, set | frozenset) or mine != back or {*map(type, mine)} != {*map(type, back)}:
            raise _Refusal("its members would come back different")
        return
    elif (parts := _parts(mine)) is None:
        _same_scalar(mine, back)
        return
    else:
        others = list(_parts(back) or ())
        ours = list(parts)
        if len(ours) != len(others):
            raise _Refusal(f"{len(ours)} parts would come back as {len(others)}")
        pairs = ((key, a, b) for (key, a), (_, b) in zip(ours, others, strict=True))
    for key, a, b in pairs:
        try:
            _same(a, b)
        except _Refusal as refusal:
            refusal.parts.append(key())
            raise


def _same_keys(mine: Mapping[Any, object], back: Mapping[Any, object]) -> None:
    kinds = {key: type(key) for key in back}
    for key in mine:
        if kinds.get(key) is not type(key):
            refusal = _Refusal(f"the key is a {type(key).__name__} and would come back as another type, or not at all")
            refusal.parts.append(f"[{key!r}]")
            raise refusal
    if len(mine) != len(back):
        raise _Refusal("keys would be lost")


def _same_scalar(mine: object, back: object) -> None:
    same = mine == back
    if isinstance(mine, dt.datetime | dt.time) and isinstance(back, dt.datetime | dt.time):
        # A named zone becomes its offset: the instant is kept, the name isn't.
        same = same and mine.utcoffset() == back.utcoffset() and mine.fold == back.fold
    if isinstance(mine, float) and isinstance(back, float):
        same = same and math.copysign(1.0, mine) == math.copysign(1.0, back)
    if not same:
        raise _Refusal(f"{mine!r} would come back as {back!r}")


_Key = Callable[[], str]


def _parts(value: object) -> Iterator[tuple[_Key, object]] | None:
    """A container's parts, each with a way to say where it is; None for what is no container."""
    match value:
        case dict():
            return ((_item(key), part) for key, part in value.items())
        case list() | tuple():
            return ((_item(index), part) for index, part in enumerate(value))
        case set() | frozenset():
            return ((_member, part) for part in value)
        case msgspec.Struct():
            return ((_attribute(name), getattr(value, name)) for name in value.__struct_fields__)
        case _ if hasattr(type(value), "__dataclass_fields__"):
            from dataclasses import fields  # a child without any does without

            kind: Any = type(value)  # a dataclass, as the line above asks
            return ((_attribute(each.name), getattr(value, each.name)) for each in fields(kind))
        case _:
            return None


def _item(key: object) -> _Key:
    return lambda: f"[{key!r}]"


def _attribute(name: str) -> _Key:
    return lambda: f".{name}"


def _member() -> str:
    return "{…}"


def _foreign(info: msgspec.inspect.Type) -> Iterator[type]:
    """Classes inside an annotation that msgspec would need a hook for."""
    todo: list[object] = [info]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case msgspec.inspect.CustomType():
                yield node.cls
            case msgspec.inspect.Type() | msgspec.inspect.Field():
                todo.extend(getattr(node, name) for name in node.__struct_fields__ if name != "default")
            case tuple():
                todo.extend(node)
            case _:
                pass
