"""A declared child: called in a run, its function runs as a run of its own, with its own log, and gives its result.

The same names as a step's, another machine: the arguments travel to the child as JSON, and it gets what the
annotations read of that, so both sides see the same whoever of them is run again.
"""

import hashlib
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar

import msgspec

from waypost.authoring.errors import ChildRefused, Misdeclared, NotReplayable
from waypost.authoring.functions import Decorated, bound, is_async, is_function, is_generator, plain_parameters
from waypost.authoring.requests import CallChild, ChildSpec
from waypost.authoring.scope import Ask, InStep, Nowhere, Stray, current
from waypost.authoring.steps import LONGEST_NAME, Step
from waypost.model.limits import DEFAULT
from waypost.model.values import ValueNotStorable, annotated, returned_by

P = ParamSpec("P")
R = TypeVar("R")


class Child(Decorated[P], Generic[P, R]):
    """A child of a workflow.

    ``child(…)`` in an ``async def`` run gives a coroutine to be awaited, in a ``def`` run it blocks and gives the
    value; a type checker is told of the first. ``function`` is what was decorated, typed as it was written.
    """

    def __init__(self, spec: ChildSpec, function: Callable[P, Any]) -> None:
        super().__init__(spec.name, function)
        self.spec = spec

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Start a child run with these arguments, and wait for its end.

        Raises TypeError for arguments that don't fit, ValueNotStorable for ones that wouldn't come back the same;
        ChildRefused when it may not be started, ChildFailed when it has failed or was cancelled. Whoever no longer
        waits (a timeout, a TaskGroup) asks for its end. NotReplayable in a step, and outside of a run.
        """
        where = f"child {self.spec.name} called"
        match current():
            case InStep():
                raise NotReplayable(f"{where} inside a step", "call it from the run function")
            case Nowhere():
                raise NotReplayable(
                    f"{where} outside of a run", f"{self.spec.name}.function is the plain function, for a test"
                )
            case Stray():
                raise NotReplayable(f"{where} outside of any run", "call it from the run function")
            case engine:
                request = self._request(args, kwargs)

                async def operation(ask: Ask) -> R:
                    if len(request.input) > DEFAULT.child_input:
                        why = f"its arguments have {len(request.input)} bytes; at most {DEFAULT.child_input} are taken"
                        raise ChildRefused(self.spec.name, why)
                    outcome: R = await ask(request)
                    return outcome

                made: Any = engine.perform(operation)
                return made  # type: ignore[no-any-return]  # a def run gives the value itself

    def _request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallChild:
        named, _, _ = bound(self.function, args, kwargs)
        codecs, parts = self.spec.parameters, dict[str, msgspec.Raw]()
        for name, value in named.items():
            try:
                parts[name] = msgspec.Raw(codecs[name].store(value, ordered=True).raw)
            except ValueNotStorable as bad:
                raise ValueNotStorable(f"{self.spec.name}().{name}{bad.path.removeprefix('$')}", bad.why) from None
        raw = msgspec.json.encode(parts)
        return CallChild(self.spec, raw, hashlib.sha256(raw).hexdigest())


def declare_child(function: Any) -> ChildSpec:
    """Check a function that is to be a child. Raises Misdeclared, or ValueNotStorable for an annotation."""
    if isinstance(function, Step | Child) or not is_function(function):
        raise Misdeclared(f"{function!r} can't be a child: decorate a function written with def or async def")
    name = function.__name__
    if name == "<lambda>":
        raise Misdeclared("a lambda can't be a child: it has no name that the log could hold")
    if len(name) > LONGEST_NAME:
        raise Misdeclared(f"child {name[:40]}… has a name of more than {LONGEST_NAME} characters")
    if is_generator(function):
        raise Misdeclared(f"child {name} is a generator: return a list, its result is recorded as a whole")
    parameters = plain_parameters(function)
    if parameters is None:
        raise Misdeclared(f"child {name} takes arguments without a name (*, ** or /): they are recorded by their names")
    return ChildSpec(
        name=name,
        function=function,
        asynchronous=is_async(function),
        codec=returned_by(function),
        parameters={each: annotated(function, each, where=f"{name}({each}=…)") for each in parameters},
    )


def arguments(spec: ChildSpec, raw: bytes) -> dict[str, Any]:
    """A child's arguments by name, from the JSON that its run was started with.

    Raises ValueNotStorable where the function's parameters no longer fit it.
    """
    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise ValueNotStorable(f"{spec.name}()", f"its recorded arguments can't be read: {bad}") from None
    found: dict[str, Any] = {}
    for name, part in parts.items():
        if name not in spec.parameters:
            raise ValueNotStorable(f"{spec.name}()", f"it has no parameter {name!r} any more")
        try:
            found[name] = spec.parameters[name].load(part)
        except ValueNotStorable as bad:
            raise ValueNotStorable(f"{spec.name}().{name}", bad.why) from None
    try:
        bound(spec.function, (), found)
    except TypeError as bad:
        raise ValueNotStorable(f"{spec.name}()", f"{bad}") from None
    return found
