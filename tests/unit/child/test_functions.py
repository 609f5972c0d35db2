"""What kind of function an author wrote: the short way says what `inspect` says."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from waypost.authoring.functions import bound, is_async, is_function, is_generator, signature, takes


async def an_async(mail): ...
async def an_async_generator(mail):
    yield mail


def a_generator(mail):
    yield mail


def nothing(): ...
def one(mail): ...
def two(mail, more): ...
def preset(mail, more=1): ...
def only_preset(mail=None): ...
def all_preset(mail=None, more=None): ...
def positional(mail, /): ...
def two_positional(mail, more, /): ...
def several(*mails): ...
def one_and_several(mail, *mails): ...
def named(*, mail): ...
def named_preset(*, mail=None): ...
def one_and_named(mail, *, more): ...
def one_and_named_preset(mail, *, more=1): ...
def several_and_named(*mails, more): ...
def keywords(**mail): ...
def anything(*mails, **more): ...
@functools.wraps(one)
def wrapper(*args, **kwargs): ...
@functools.wraps(two)
def wrapper_of_two(*args, **kwargs): ...
@functools.wraps(nothing)
def wrapper_of_none(mail): ...
@functools.wraps(an_async)
def wrapper_of_async(*args): ...
def claiming(*args): ...


claiming.__signature__ = inspect.signature(nothing)  # type: ignore[attr-defined]  # as decorators do


def awaited(mail): ...


if hasattr(inspect, "markcoroutinefunction"):  # Python 3.12
    inspect.markcoroutinefunction(awaited)

FUNCTIONS: list[Callable[..., Any]] = [
    each for each in list(globals().values()) if inspect.isfunction(each) and each.__module__ == __name__
]
FUNCTIONS.append(lambda mail: mail)


def as_inspect_says(function: Callable[..., Any]) -> int | None:
    """How many arguments it takes, by its signature alone."""
    found = inspect.signature(function)
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    given = int(any(each.kind in kinds for each in found.parameters.values()))
    try:
        found.bind(*[None] * given)
    except TypeError:
        return None
    return given


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_short_way_says_what_inspect_says(function: Callable[..., Any]) -> None:
    """Otherwise a file that could be deployed yesterday couldn't be today, or the other way round."""
    assert is_function(function)
    assert is_async(function) is inspect.iscoroutinefunction(function)
    assert is_generator(function) is (inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function))
    assert takes(function) == as_inspect_says(function)
    assert signature(function) == inspect.signature(function)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    *(((), {}), ((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((), {"mail": 1}), ((1,), {"more": 2}), ((1,), {"mail": 1})),
    *(((), {"mail": 1, "more": 2}), ((), {"more": 2}), ((1,), {"other": 3}), ((1, 2), {"more": 3})),
]


def bound_by_inspect(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]] | None:
    """What `bound` promises to say, None where the arguments don't fit."""
    try:
        found = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    return dict(found.arguments), found.args, found.kwargs


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_call_is_bound_as_inspect_binds_it(function: Callable[..., Any]) -> None:
    """The digest of a step's arguments is in the log: a replay by another way must find the same one."""
    for call in CALLS:
        expected = bound_by_inspect(function, *call)
        if expected is None:
            with pytest.raises(TypeError):
                bound(function, *call)
        else:
            assert bound(function, *call) == expected


@pytest.mark.parametrize("other", [len, int, functools.partial(one), str.join, object()])
def test_what_nobody_wrote_with_def_is_no_function(other: object) -> None:
    """A step's name and its annotations come from the function itself."""
    assert is_function(other) is inspect.isfunction(other) is False
