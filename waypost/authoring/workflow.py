"""The declaration of a workflow: name, address, settings, steps, and the one function that is run for a mail."""

import re
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, get_args, overload

from msgspec import UNSET

from waypost.authoring.children import Child, declare_child
from waypost.authoring.errors import Misdeclared
from waypost.authoring.functions import is_async, is_function, is_generator, takes
from waypost.authoring.schedules import Schedules
from waypost.authoring.steps import Step, declare, secret_handles
from waypost.model.address import address as mail_address
from waypost.model.declaration import ChildDeclared, Declared, OnCrashLoop, OnDrain, Runs, StepDeclared
from waypost.model.errors import Invalid
from waypost.model.ids import deployment
from waypost.model.schedule import CatchUp, Gap, Overlap, Repeat
from waypost.model.values import Codec, returned_by

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_ENV = r"[A-Za-z_][A-Za-z0-9_]*\Z"
_LATER = {
    "timeout": "bound the work inside the step for now",
    "at_most_once": "make the step idempotent with idempotency_key() for now",
    "compensate": "undo in the run function with try/except for now",
}


class StepDecorator(Protocol):
    """What ``@workflow.step(…)`` gives: it turns a function into a step of the same types."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Step[P, R]: ...


class Workflow:
    """A workflow: one to a file, at module level.

    ``name``: 1 to 63 of a-z, 0-9, '-'; ``address``: whose mail it gets; ``mail_to``: whom it may write to, besides
    the sender of a run's first mail; ``runs``: which mails share a run, those of one ``"thread"``, each ``"message"``
    alone, or all of the ``"deployment"``; ``env``: names of environment variables that it may see; ``on_crash_loop``:
    when its process ends again and again, live runs ``"wait"`` for an operator, or those that aren't parked ``"fail"``;
    ``files``: data files that belong to the code, from its own folder: names, folders, patterns such as
    ``templates/*.html``; ``secrets``: handles of secrets that every step of it asks for; ``warm``: its process is
    kept where there is nothing to do (as a rule it is let go of, and started again in a moment). Raises Misdeclared.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each setting
        self,
        name: str,
        *,
        address: str,
        mail_to: Sequence[str] = (),
        runs: Runs = "thread",
        env: Sequence[str] = (),
        on_crash_loop: OnCrashLoop = "wait",
        files: Sequence[str] = (),
        secrets: Sequence[str] = (),
        warm: bool = False,
    ) -> None:
        try:
            self.name: str = deployment(name)
            self.address = mail_address(address)
            self.mail_to = tuple(mail_address(one) for one in _several("mail_to", mail_to))
        except (Invalid, TypeError) as bad:
            raise Misdeclared(f"Workflow({name!r}): {bad}") from None
        self.runs: Runs = _one_of(name, "runs", runs, get_args(Runs))
        self.on_crash_loop: OnCrashLoop = _one_of(name, "on_crash_loop", on_crash_loop, get_args(OnCrashLoop))
        self.warm: bool = _one_of(name, "warm", warm, (False, True))
        self.env = tuple(_several("env", env))
        for variable in self.env:
            if not re.match(_ENV, str(variable)):
                raise Misdeclared(f"Workflow({name!r}): env= lists names of variables, not {variable!r}")
        self.files = tuple(map(str, _several("files", files)))
        for file in self.files:
            if file.startswith("/") or ".." in file.split("/"):
                raise Misdeclared(f"Workflow({name!r}): files= lists what lies in its own folder, not {file!r}")
        self.secrets = secret_handles(f"Workflow({name!r})", secrets)
        self.module: str = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001 - told from imported ones
        self._steps: dict[str, Step[..., Any]] = {}
        self._children: dict[str, Child[..., Any]] = {}
        self._function: Callable[..., Any] | None = None
        self._codec: Codec | None = None
        self._schedules = Schedules(self.name)

    def __repr__(self) -> str:
        return f"<workflow {self.name}>"

    @overload
    def step(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def step(self, function: Callable[P, R], /) -> Step[P, R]: ...
    @overload
    def step(
        self,
        /,
        *,
        retries: int = 0,
        raises: Sequence[type[Exception]] = (),
        on_drain: OnDrain = "wait",
        secrets: Sequence[str] = (),
    ) -> StepDecorator: ...
    def step(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        retries: int = 0,
        raises: Sequence[type[Exception]] = (),
        on_drain: OnDrain = "wait",
        secrets: Sequence[str] = (),
        **later: object,
    ) -> Any:
        """Make a function a step: ``@workflow.step`` or ``@workflow.step(retries=3, raises=(Declined,))``.

        ``retries``: further tries after one that raised, 1 s later, then 2 s, doubling to 60 s. ``raises``: exception
        types that are an answer: never retried, and raised in the workflow as themselves, rebuilt from their ``args``;
        everything else reaches the workflow as StepError. ``on_drain="cancel"``: a deployment that is taken out of
        service (``waypost drain --end``) doesn't wait for it for ever. ``secrets``: handles of the secrets that it asks
        for; an operator grants them (``waypost grants set``). Raises Misdeclared or ValueNotStorable.
        """
        for name in later:
            reason = _LATER.get(name)
            raise Misdeclared(
                f"@step({name}=…) doesn't exist yet: {reason}" if reason else f"@step({name}=…) is no setting"
            )
        if function is None:
            return lambda decorated: self._add(decorated, retries, raises, on_drain, secrets)
        return self._add(function, retries, raises, on_drain, secrets)

    def _add(
        self,
        function: Any,
        retries: int,
        raises: Sequence[type[Exception]],
        on_drain: OnDrain,
        secrets: Sequence[str],
    ) -> Step[..., Any]:
        spec = declare(function, retries=retries, raises=raises, on_drain=on_drain, secrets=secrets)
        if spec.name in self._children:
            raise Misdeclared(
                f"{self.name} has a child and a step called {spec.name}; the log tells them apart by name"
            )
        if spec.name in self._steps:
            raise Misdeclared(f"{self.name} has two steps called {spec.name}; the log tells them apart by name")
        step: Step[..., Any] = Step(spec, function)
        self._steps[spec.name] = step
        return step

    @overload
    def child(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Child[P, R]: ...
    @overload
    def child(self, function: Callable[P, R], /) -> Child[P, R]: ...
    def child(self, function: Any, /) -> Any:
        """Make a function, ``async def`` or ``def``, a child: called in a run, it is a run of its own.

        It may do all that a run function may, and takes any arguments that have a JSON form, by name. Its annotations
        say how they, and its result, are read back. Raises Misdeclared or ValueNotStorable.
        """
        spec = declare_child(function)
        if spec.name in self._children or spec.name in self._steps:
            two = "a step and a child" if spec.name in self._steps else "two children"
            raise Misdeclared(f"{self.name} has {two} called {spec.name}; the log tells them apart by name")
        child: Child[..., Any] = Child(spec, function)
        self._children[spec.name] = child
        return child

    def run(self, function: F) -> F:
        """Make a function, ``async def`` or ``def``, the one that is run; it takes the mail, or nothing.

        Raises Misdeclared or ValueNotStorable.
        """
        given = function  # what is handed back has the type that came in
        if isinstance(function, Step | Child) or not is_function(function):
            raise Misdeclared(f"{self.name}: @run wants a function written with def or async def, not {function!r}")
        if is_generator(function):
            raise Misdeclared(f"{self.name}: {function.__name__} is a generator and can't be run")
        if self._function is not None:
            raise Misdeclared(f"{self.name} has two run functions: {self._function.__name__} and {function.__name__}")
        if takes(function) is None:
            raise Misdeclared(
                f"{self.name}: {function.__name__} is called with the mail, or with nothing; it wants other arguments"
            )
        self._codec = returned_by(function)
        self._function = function
        return given

    def cron(
        self,
        expression: str,
        /,
        *,
        tz: str = "UTC",
        name: str | None = None,
        gap: Gap = "run-after",
        repeat: Repeat = "first",
        catch_up: CatchUp = "latest",
        overlap: Overlap = "skip",
    ) -> Callable[[F], F]:
        """Run it by the clock, too: ``@workflow.cron("0 9 * * *", tz="Europe/Berlin")`` above ``@workflow.run``.

        Five fields, a zone's IANA name, and up to a hundred of them, each with a ``name`` where several would be alike.
        The run function is called with a mail whose ``tick`` says which schedule it was, and when it was due.
        ``gap``: a time that the clock jumps over is due right after (``"run-after"``), or not (``"skip"``);
        ``repeat``: one that comes twice is due the ``"first"`` time, or ``"both"``; ``catch_up``: of ticks that were
        missed ``"none"`` is made up for, the ``"latest"``, or so many; ``overlap``: while the run of the tick before
        hasn't ended, ``"skip"`` this one, ``"queue"`` it, or ``"cancel"`` that run. Raises Misdeclared.
        """
        made = self._schedules.add(
            expression, tz=tz, name=name, gap=gap, repeat=repeat, catch_up=catch_up, overlap=overlap
        )

        def noted(function: F) -> F:
            self._schedules.above(made, function)
            return function

        return noted

    # --- for the runtime -------------------------------------------------------------------------------------------

    @property
    def asynchronous(self) -> bool:
        """Whether the run function is ``async def``."""
        return is_async(self._run_function())

    @property
    def result(self) -> Codec:
        """The codec of what the run function returns."""
        self._run_function()
        assert self._codec is not None
        return self._codec

    def body(self, mail: object) -> Callable[[], Any]:
        """The run function with its mail, ready to be called."""
        function = self._run_function()
        arguments = (mail,) * (takes(function) or 0)
        return lambda: function(*arguments)

    def child_named(self, name: str) -> Child[..., Any] | None:
        """The child of this name."""
        return self._children.get(name)

    def declared(self) -> Declared:
        """What the host needs to know. Raises Misdeclared when there is no run function."""
        children = self._children.values()
        return Declared(
            name=self.name,
            address=self.address,
            mail_to=self.mail_to,
            runs=self.runs,
            env=self.env,
            files=self.files,
            on_crash_loop=self.on_crash_loop,
            warm=True if self.warm else UNSET,
            asynchronous=self.asynchronous,
            schedules=self._schedules.declared(self._run_function()),
            steps=tuple(
                StepDeclared(
                    name=step.spec.name,
                    asynchronous=step.spec.asynchronous,
                    retries=step.spec.retries,
                    raises=tuple(kind.__name__ for kind in step.spec.raises),
                    on_drain="cancel" if step.spec.on_drain == "cancel" else UNSET,
                    secrets=step.spec.secrets or UNSET,
                )
                for step in self._steps.values()
            ),
            secrets=self.secrets or UNSET,
            children=tuple(ChildDeclared(name=each.spec.name, asynchronous=each.spec.asynchronous) for each in children)
            or UNSET,
        )

    def _run_function(self) -> Callable[..., Any]:
        if self._function is None:
            raise Misdeclared(
                f"{self.name} has no run function", hint=f"decorate the one that takes the mail with @{self.name}.run"
            )
        return self._function


def _one_of(workflow: str, what: str, given: T, known: Sequence[T]) -> T:
    if given not in known:
        raise Misdeclared(f"Workflow({workflow!r}): {what}={given!r} is none of {', '.join(map(repr, known))}")
    return given


def _several(what: str, given: Sequence[str]) -> Sequence[str]:
    if isinstance(given, str):
        raise Misdeclared(f"{what}= takes a list: {what}=[{given!r}]")
    return given
