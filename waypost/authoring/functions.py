"""What kind of function an author wrote: read off its code, as `inspect` does, without loading `inspect`.

That module and those below it are 7 ms of a child's start. Where it is needed after all (a function that claims
another signature than its own, a call's arguments) it is asked.
"""

import functools
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

if TYPE_CHECKING:
    from inspect import Signature

P = ParamSpec("P")

# Of a code object's co_flags: a promise of the language reference's data model, there by these numbers since 3.6.
_VARARGS = 0x04
_VARKEYWORDS = 0x08
_GENERATOR = 0x20
_COROUTINE = 0x80
_ASYNC_GENERATOR = 0x200


class Decorated(Generic[P]):
    """What a decorator makes of a function: it keeps that, and has the name under which it is known in runs."""

    def __init__(self, name: str, function: Callable[P, Any]) -> None:
        self.function = function
        self.__name__ = name
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.__name__}>"


def is_function(given: object) -> bool:
    """Whether it was written with ``def``, ``async def`` or ``lambda``."""
    return isinstance(given, FunctionType)


def is_generator(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a generator, of either kind."""
    return bool(_code(function).co_flags & (_GENERATOR | _ASYNC_GENERATOR))


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine: written with ``async def``, or marked as such by means of `inspect`."""
    if _code(function).co_flags & _COROUTINE:
        return True
    inspect = sys.modules.get("inspect")  # nobody can have marked anything without having loaded it
    return inspect is not None and bool(inspect.iscoroutinefunction(function))


def takes(function: Callable[..., Any]) -> int | None:
    """1 if it is called with one argument, 0 if with none; None if it wants others."""
    if hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return _claimed(function)
    code = _code(function)
    given = int(code.co_argcount > 0 or bool(code.co_flags & _VARARGS))
    needed = code.co_argcount - len(getattr(function, "__defaults__", None) or ())
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    preset = getattr(function, "__kwdefaults__", None) or {}
    return given if needed <= given and all(name in preset for name in named) else None


def plain_parameters(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """The names of its parameters; None where not all can be given by name, or others beside them."""
    if hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        found = signature(function).parameters.values()
        named = all(each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY} for each in found)
        return tuple(each.name for each in found) if named else None
    code = _code(function)
    if code.co_posonlyargcount or code.co_flags & (_VARARGS | _VARKEYWORDS):
        return None
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


@functools.lru_cache(maxsize=1024)
def signature(function: Callable[..., Any]) -> "Signature":
    """The function's signature, to bind a call's arguments to."""
    import inspect

    return inspect.signature(function)


def bound(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]:
    """A call's arguments by the names of their parameters, and as `inspect` gives them: by place, by name.

    Raises TypeError where they don't fit.
    """
    names, needed = _by_place(function)
    if not kwargs and needed <= len(args) <= len(names):
        return dict(zip(names, args, strict=False)), args, {}
    found = signature(function).bind(*args, **kwargs)
    return found.arguments, found.args, found.kwargs


@functools.lru_cache(maxsize=1024)
def _by_place(function: Callable[..., Any]) -> tuple[tuple[str, ...], int]:
    """The parameters that can be given by place, where nothing else has to be, and how many must be.

    (), 1 for any other function: no call fits that. A replay makes each call of a run again, and `inspect` takes
    a third of the time that it takes to say so.
    """
    code = _code(function)
    plain = not (hasattr(function, "__wrapped__") or hasattr(function, "__signature__") or code.co_flags & _VARARGS)
    if not plain or code.co_kwonlyargcount > len(getattr(function, "__kwdefaults__", None) or ()):
        return (), 1
    names = code.co_varnames[: code.co_argcount]
    return names, len(names) - len(getattr(function, "__defaults__", None) or ())


def _claimed(function: Callable[..., Any]) -> int | None:
    """As `takes`, for a function whose decorator says that it is to be called like another one."""
    import inspect

    found = signature(function)
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    given = int(any(each.kind in positional for each in found.parameters.values()))
    try:
        found.bind(*[None] * given)
    except TypeError:
        return None
    return given


def _code(function: Callable[..., Any]) -> CodeType:
    code: CodeType = function.__code__  # only what `is_function` is given here
    return code
