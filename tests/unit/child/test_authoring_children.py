"""Child workflows as an author writes them: what may be declared, what travels, and where they may be called."""

import asyncio
import functools
import hashlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from waypost import Child, ChildFailed, ChildRefused, Misdeclared, NotReplayable, ValueNotStorable, Workflow
from waypost.authoring.children import arguments
from waypost.authoring.requests import CallChild, Request
from waypost.authoring.scope import InStep, enter
from waypost.model.declaration import ChildDeclared
from waypost.model.limits import DEFAULT


class Line(msgspec.Struct):
    """An argument with a type of its own."""

    item: str
    amount: Decimal


def a_workflow() -> Workflow:
    """A workflow with nothing in it."""
    return Workflow("orders", address="orders@example.com")


def paying() -> Child[[Line, int], str]:
    """A child of two arguments, one of them with a default."""
    flow = a_workflow()

    @flow.child
    async def pay(line: Line, times: int = 1) -> str:
        return line.item * times

    return pay


class Asked:
    """A run that answers nothing: what it is asked for is kept."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def perform(self, operation: Callable[[Any], Any]) -> Any:
        """As an async run does."""
        return operation(self._ask)

    async def _ask(self, request: Request) -> Any:
        self.requests.append(request)


def asked(call: Callable[[], Any]) -> CallChild:
    """What a call in a run asks its host for."""

    async def main() -> CallChild:
        run = Asked()
        enter(run)
        await call()
        (request,) = run.requests
        assert isinstance(request, CallChild)
        return request

    return asyncio.run(main())


def test_arguments_travel_by_name_as_the_annotations_say() -> None:
    """By place or by name is the same call; a default that isn't given isn't recorded: the code may change it."""
    pay = paying()
    request = asked(lambda: pay(Line("desk", Decimal("1.50")), 2))
    assert request.input == b'{"line":{"amount":"1.50","item":"desk"},"times":2}'
    assert request.digest == hashlib.sha256(request.input).hexdigest()
    again = asked(lambda: pay(times=2, line=Line("desk", Decimal("1.50"))))  # type: ignore[call-arg]
    assert again.input == request.input
    assert arguments(pay.spec, request.input) == {"line": Line("desk", Decimal("1.50")), "times": 2}
    assert asked(lambda: pay(Line("desk", Decimal(1)))).input == b'{"line":{"amount":"1","item":"desk"}}'  # type: ignore[call-arg]


def test_a_set_travels_in_one_order() -> None:
    """Strings hash otherwise in each process: the replay of a parent must come with the same bytes."""
    flow = a_workflow()

    @flow.child
    async def count(names: set[str], by_number: dict[int, str]) -> int:
        return len(names)

    request = asked(lambda: count({"c", "a", "b"}, {2: "x", 1: "y"}))
    assert request.input == b'{"names":["a","b","c"],"by_number":{"1":"y","2":"x"}}'
    assert arguments(count.spec, request.input) == {"names": {"a", "b", "c"}, "by_number": {1: "y", 2: "x"}}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (float("nan"), r"count\(\)\.what: nan has no JSON form"),
        (
            Line("desk", Decimal(1)),
            r"count\(\)\.what: is a Line and would come back as a dict; say so in the annotation",
        ),
        ({"a": [(1,)]}, r"count\(\)\.what\['a'\]\[0\]: is a tuple"),
    ],
)
def test_an_argument_that_would_not_come_back_is_refused_at_the_call(value: object, where: str) -> None:
    """The child must get what its parent gave; the message names the parameter, and the place in it."""
    flow = a_workflow()

    @flow.child
    async def count(what: Any) -> int:
        return 1

    with pytest.raises(ValueNotStorable, match=where):
        asked(lambda: count(value))


def test_arguments_that_dont_fit_are_a_type_error() -> None:
    """As for any function."""
    with pytest.raises(TypeError, match="missing a required argument"):
        asked(lambda: paying()(amount=1))  # type: ignore[call-arg]


def test_too_much_is_refused_when_it_is_awaited() -> None:
    """Where the host's own refusals come, too: one `except` is enough."""
    flow = a_workflow()

    @flow.child
    async def keep(text: str) -> int:
        return len(text)

    with pytest.raises(ChildRefused, match="at most 1048576 are taken") as refused:
        asked(lambda: keep("x" * DEFAULT.child_input))
    assert refused.value.workflow == "keep"
    assert asked(lambda: keep("x" * (DEFAULT.child_input - len('{"text":""}')))).input


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"line":{"item":"x","amount":"1"},"more":1}', r"pay\(\): it has no parameter 'more' any more"),
        (b'{"line":{"item":"x"}}', r"pay\(\)\.line: the recorded value doesn't fit the annotation"),
        (b"{}", r"pay\(\): missing a required argument: 'line'"),
        (b"[]", r"pay\(\): its recorded arguments can't be read"),
        (b'{"line":', r"pay\(\): its recorded arguments can't be read"),
    ],
)
def test_recorded_arguments_that_the_code_no_longer_takes_are_told_apart(raw: bytes, why: str) -> None:
    """After a deploy: the run is paused with these words."""
    with pytest.raises(ValueNotStorable, match=why):
        arguments(paying().spec, raw)


def test_a_child_in_a_step_or_outside_of_a_run_says_what_to_do() -> None:
    """It would have no place in any log."""
    pay, line = paying(), Line("desk", Decimal(1))
    with pytest.raises(NotReplayable, match=r"outside of a run.* pay\.function is the plain function"):
        _ = pay(line, 1)
    assert asyncio.run(pay.function(line, 2)) == "deskdesk"

    async def in_step() -> None:
        enter(InStep("0" * 64, print))
        await pay(line, 1)

    with pytest.raises(NotReplayable, match="inside a step"):
        asyncio.run(in_step())


def test_declared_children_are_in_the_definition_and_nothing_is_where_there_are_none() -> None:
    """So no hash of a workflow without children has changed."""
    flow = a_workflow()

    @flow.run
    async def order() -> None: ...

    assert flow.declared().children is UNSET
    plain = flow.declared().digest()

    @flow.child
    def pay(amount: int) -> str:
        """Pays."""
        return str(amount)

    assert flow.declared().children == (ChildDeclared(name="pay", asynchronous=False),)
    assert flow.declared().digest() != plain
    assert flow.child_named("pay") is pay
    assert flow.child_named("none") is None
    assert (repr(pay), pay.__name__, pay.__doc__) == ("<child pay>", "pay", "Pays.")


def starred(*lines: int) -> None:
    """Arguments without names."""


def keywords(**lines: int) -> None:
    """The same."""


def only_by_place(line: int, /) -> None:
    """A name that the call can't use."""


def generates() -> Any:
    """A generator."""
    yield 1


def not_readable(what: asyncio.Lock) -> None:
    """A type without a JSON form."""


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (starred, r"starred takes arguments without a name \(\*, \*\* or /\)"),
        (keywords, "without a name"),
        (only_by_place, "without a name"),
        (generates, "is a generator"),
        (lambda: None, "a lambda can't be a child"),
        (print, "decorate a function"),
    ],
)
def test_what_cant_be_a_child_is_refused_in_words(function: Any, text: str) -> None:
    """When the file is looked at, not in the middle of a run."""
    with pytest.raises(Misdeclared, match=text):
        a_workflow().child(function)


def test_a_parameter_that_cant_be_read_back_is_refused_when_the_file_is_read() -> None:
    """And the message names the parameter."""
    with pytest.raises(ValueNotStorable, match=r"not_readable\(what=…\)"):
        a_workflow().child(not_readable)


def test_names_of_steps_and_children_are_one_set() -> None:
    """Two of one name couldn't be told apart in `waypost show`."""
    flow = a_workflow()

    def pay() -> None: ...

    step = flow.step(pay)
    with pytest.raises(Misdeclared, match="a step and a child called pay"):
        flow.child(pay)
    with pytest.raises(Misdeclared, match="decorate a function written with"):
        flow.child(step)
    other = a_workflow()
    child = other.child(pay)
    with pytest.raises(Misdeclared, match="two children called pay"):
        other.child(pay)
    with pytest.raises(Misdeclared, match="a child and a step called pay"):
        other.step(pay)
    with pytest.raises(Misdeclared, match="wants a function"):
        other.run(child)


def test_a_failed_child_says_which_run_it_was_and_what_it_raised() -> None:
    """What a message in a log needs; `waypost show RUN` has the rest."""
    failed = ChildFailed(run="run_7_0011223344556677", workflow="pay", outcome="failed", type="ValueError", reason="no")
    assert str(failed) == "child pay (run_7_0011223344556677) failed: ValueError: no"
    ended = ChildFailed(
        run="run_7_0011223344556677", workflow="pay", outcome="cancelled", type="RunCancelled", reason="enough"
    )
    assert str(ended) == "child pay (run_7_0011223344556677) was cancelled: enough"


def test_a_wrapped_function_is_taken_by_the_signature_that_it_claims() -> None:
    """As everywhere in Python."""

    def inner(amount: int, times: int = 1) -> int:
        return amount * times

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> int:
        return inner(*args, **kwargs)

    child = a_workflow().child(outer)
    assert tuple(child.spec.parameters) == ("amount", "times")
    assert asked(lambda: child(2, times=3)).input == b'{"amount":2,"times":3}'

    @functools.wraps(starred)
    def stars(*args: Any) -> None:
        return starred(*args)

    with pytest.raises(Misdeclared, match="without a name"):
        a_workflow().child(stars)
