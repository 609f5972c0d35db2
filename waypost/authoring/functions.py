"""What kind of function an author wrote: read off its code, as `inspect` does, without loading `inspect`.

That module and those below it are 7 ms of a child's start. Where it is needed after all (a function that claims
another signature than its own, a call's arguments) it is asked.
"""

import functools
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

# Of a code object's co_flags: a promise of the language reference's data model, there by these numbers since 3.6.
_VARARGS = 0x04
_GENERATOR = 0x20
_COROUTINE = 0x80
_ASYNC_GENERATOR = 0x200


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


@functools.lru_cache(maxsize=1024)
def signature(function: Callable[..., Any]) -> "Signature":
    """The function's signature, to bind a call's arguments to."""
    import inspect

    return inspect.signature(function)


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
