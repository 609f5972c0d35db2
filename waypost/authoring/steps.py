"""A declared step: the same object is called in runs, in other steps and outside of both.

In a run the call is recorded and its body runs elsewhere, once or, after a crash, again under the same idempotency
key. Inside another step, or in a plain process such as a test, it is the function itself.
"""

from collections.abc import Callable, Collection, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar

from waypost.authoring.errors import Misdeclared, NotReplayable
from waypost.authoring.functions import Decorated, bound, is_async, is_function, is_generator
from waypost.authoring.requests import CallStep, StepSpec
from waypost.authoring.scope import Ask, InStep, Nowhere, Stray, current
from waypost.model.errors import Invalid
from waypost.model.mail_record import Mail
from waypost.model.values import ValueNotStorable, digest, returned_by

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

MOST_RETRIES = 1000
LONGEST_NAME = 200
LINE = 1000
_UNCHANGING = frozenset((type(None), bool, int, float, str, bytes, Mail))


class Step(Decorated[P], Generic[P, R]):
    """A step of a workflow.

    ``step(…)`` in an ``async def`` run gives a coroutine to be awaited, in a ``def`` run it blocks and gives the
    value; a type checker is told of the first. ``function`` is what was decorated, typed as it was written.
    """

    def __init__(self, spec: StepSpec, function: Callable[P, Any]) -> None:
        super().__init__(spec.name, function)
        self.spec = spec

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the step.

        Raises TypeError for arguments that don't fit, ValueNotStorable for ones without a JSON form, and, when the
        step has failed for good, StepError or one of the types it declares in ``raises``.
        """
        match current():
            case InStep() | Nowhere():
                plain: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
                return plain
            case Stray():
                raise NotReplayable(f"step {self.spec.name} called outside of any run", "call it from the run function")
            case engine:
                request = self._request(args, kwargs)

                async def operation(ask: Ask) -> R:
                    outcome: R = await ask(request)
                    return outcome

                made: Any = engine.perform(operation)
                return made  # type: ignore[no-any-return]  # a def run gives the value itself

    def _request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallStep:
        named, by_place, by_name = bound(self.function, args, kwargs)
        try:
            found = digest({name: _named(value) for name, value in named.items()})
        except ValueNotStorable as bad:
            raise ValueNotStorable(f"{self.spec.name}(){bad.path.removeprefix('$')}", bad.why) from None
        return CallStep(self.spec, _own(by_place, by_place), _own(by_name, by_name.values()), found)


def _named(value: Any) -> Any:
    """A mail takes part in a digest by its name: it can be large, and it never changes."""
    return {"mail": value.sha256} if isinstance(value, Mail) else value


def _own(given: T, values: Collection[Any]) -> T:
    """Arguments as the step gets them: one that changed its caller's list would do so live and not in a replay.

    ``values``: each of them. What can't be changed needn't be copied; of a mail the attachments needn't even be walked.
    """
    if _UNCHANGING.issuperset(map(type, values)):
        return given
    import copy  # not before there is something to copy

    return copy.deepcopy(given, {id(value): value for value in values if isinstance(value, Mail)})


def declare(  # noqa: C901 - one check each
    function: Any, *, retries: Any, raises: object, on_drain: object = "wait", secrets: Any = ()
) -> StepSpec:
    """Check a function that is to be a step. Raises Misdeclared, or ValueNotStorable for its return annotation."""
    if not is_function(function):
        raise Misdeclared(f"{function!r} can't be a step: decorate a function written with def or async def")
    if function.__name__ == "<lambda>":
        raise Misdeclared("a lambda can't be a step: it has no name that the log could hold")
    if len(function.__name__) > LONGEST_NAME:
        raise Misdeclared(f"step {function.__name__[:40]}… has a name of more than {LONGEST_NAME} characters")
    where = f"step {function.__name__}"
    if is_generator(function):
        raise Misdeclared(f"{where} is a generator: return a list, a step's result is recorded as a whole")
    if not isinstance(retries, int) or isinstance(retries, bool) or not 0 <= retries <= MOST_RETRIES:
        raise Misdeclared(f"{where}: retries={retries!r} is not a number from 0 to {MOST_RETRIES}")
    if on_drain not in {"wait", "cancel"}:
        raise Misdeclared(f"{where}: on_drain={on_drain!r} is neither 'wait' nor 'cancel'")
    if isinstance(raises, type):
        raise Misdeclared(f"{where}: raises= takes a tuple: raises=({raises.__name__},)")
    types: tuple[Any, ...] = tuple(raises) if isinstance(raises, tuple | list) else (raises,)
    for kind in types:
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            raise Misdeclared(f"{where}: raises= lists exception types, not {kind!r}")
    names = [kind.__name__ for kind in types]
    if len(set(names)) != len(names):
        raise Misdeclared(f"{where}: two types of one name in raises=: {', '.join(names)}")
    return StepSpec(
        name=function.__name__,
        function=function,
        asynchronous=is_async(function),
        codec=returned_by(function),
        retries=retries,
        raises=types,
        on_drain=str(on_drain),
        secrets=secret_handles(where, secrets),
    )


def secret_handles(where: str, given: Any) -> tuple[str, ...]:
    """The handles that ``secrets=`` lists, each once. Raises Misdeclared."""
    if not given:
        return ()
    from waypost.model.grants import handle  # a workflow that asks for none starts without it

    if isinstance(given, str):
        raise Misdeclared(f"{where}: secrets= takes a list: secrets=[{given!r}]")
    try:
        return tuple(dict.fromkeys(handle(each) for each in given))
    except (Invalid, TypeError) as bad:
        raise Misdeclared(f"{where}: {bad}") from None


def idempotency_key() -> str:
    """The key of this call, 64 hex digits: the same on every try of it, also after a crash. For use inside a step.

    In a plain process (a test) it is 64 zeros. Raises NotReplayable outside of a step.
    """
    match current():
        case InStep(key):
            return key
        case Nowhere():
            return "0" * 64
        case _:
            raise NotReplayable("idempotency_key() outside of a step", "call it inside the step's function")


def cancelled() -> bool:
    """Whether the run is being cancelled, so that the step should stop. For use inside a ``def`` step that takes long.

    An ``async def`` step is cancelled by itself: asyncio.CancelledError is raised in it. In a plain process (a test)
    it is False. Raises NotReplayable outside of a step.
    """
    match current():
        case InStep() as step:
            return step.recall.said
        case Nowhere():
            return False
        case _:
            raise NotReplayable("cancelled() outside of a step", "in the run itself, cancellation is an exception")


def recycle(reason: str) -> None:
    """Ask the host for a fresh process in place of this one, for ``reason``: one line. For use in a step.

    It returns at once, and the step goes on: what executes comes to rest first, and what waits is driven by the next
    process. Where a process is being replaced anyway, or in a plain one, it does nothing. Raises NotReplayable outside
    of a step, Invalid for what is no text.
    """
    line = _line("recycle", reason)
    match current():
        case InStep() as step:
            step.renew(line)
        case Nowhere():
            pass
        case _:
            raise NotReplayable("recycle() outside of a step", "call it inside the step's function")


def progress(text: str) -> None:
    """Tell whoever watches the run what the step is at: one line, 1000 characters, never recorded. For use in a step.

    In a plain process it does nothing. Raises NotReplayable outside of a step, Invalid for what is no text.
    """
    line = _line("progress", text)
    match current():
        case InStep() as step:
            step.report(line)
        case Nowhere():
            pass
        case _:
            raise NotReplayable("progress() outside of a step", "call it inside the step's function")


def _line(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise Invalid(f"{name}() takes text, not {text!r}")
    return " ".join(text.split()).encode("utf-8", "backslashreplace").decode()[:LINE]
