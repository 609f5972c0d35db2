"""Declarations: what a workflow file may say, and the plain text for what it may not."""

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

import waypost
from waypost import Misdeclared, NotReplayable, ValueNotStorable, Workflow, idempotency_key, progress, receive, sleep
from waypost.authoring.scope import InStep, current


def a_workflow(**settings: Any) -> Workflow:
    """A workflow with nothing in it."""
    return Workflow("orders", address="orders@example.com", **settings)


class Declined(Exception):
    """An answer that is raised."""


class AlsoDeclined(Exception):
    """Another."""


def test_public_names() -> None:
    """The authoring API grows only on purpose, and every name of it can be loaded."""
    assert waypost.__all__ == [
        "Attachment",
        "BadSignal",
        "Child",
        "ChildFailed",
        "ChildRefused",
        "DeadlinePassed",
        "Invalid",
        "Mail",
        "Misdeclared",
        "NotReplayable",
        "RunCancelled",
        "Secret",
        "SecretRefused",
        "SendRefused",
        "Source",
        "Step",
        "StepError",
        "Tick",
        "ValueNotStorable",
        "Verdict",
        "WaypostError",
        "Workflow",
        "approve",
        "cancel",
        "cancelled",
        "idempotency_key",
        "progress",
        "receive",
        "recycle",
        "secret",
        "send",
        "signal",
        "sleep",
        "sources",
    ]
    assert all(getattr(waypost, name) for name in waypost.__all__)
    assert set(waypost.__all__) <= set(dir(waypost))


def test_a_name_that_the_door_lacks_is_an_attribute_error() -> None:
    """`from waypost import recieve` must fail like any misspelt import."""
    with pytest.raises(AttributeError, match="recieve"):
        _ = waypost.recieve


def test_a_declaration_says_everything_the_host_needs() -> None:
    """It is all the host ever knows of the file: it never imports it."""
    flow = a_workflow(mail_to=["Boss@EXAMPLE.com"], runs="message", env=["API_URL"], on_crash_loop="fail")

    @flow.step
    def read(mail: object) -> int:
        return 1

    @flow.step(retries=3, raises=(Declined,))
    async def pay(amount: int) -> str:
        return "paid"

    @flow.run
    async def order(mail: object) -> None: ...

    declared = flow.declared()
    assert (declared.name, declared.address, declared.runs) == ("orders", "orders@example.com", "message")
    assert declared.mail_to == ("Boss@example.com",)
    assert declared.env == ("API_URL",)
    assert declared.on_crash_loop == "fail"
    assert declared.asynchronous
    assert [(s.name, s.asynchronous, s.retries, s.raises) for s in declared.steps] == [
        ("read", False, 0, ()),
        ("pay", True, 3, ("Declined",)),
    ]
    assert len(declared.digest()) == 64


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"name": "Orders!"}, "can't name a deployment"),
        ({"address": "no address"}, "orders"),
        ({"mail_to": "boss@example.com"}, r"mail_to=\['boss@example.com'\]"),
        ({"mail_to": ["nobody"]}, "nobody"),
        ({"runs": "mail"}, "'thread', 'message', 'deployment'"),
        ({"env": ["A=B"]}, "names of variables"),
        ({"on_crash_loop": "stop"}, "'wait', 'fail'"),
        ({"warm": "yes"}, "False, True"),
    ],
)
def test_a_bad_setting_is_refused_in_words(settings: dict[str, Any], text: str) -> None:
    """The author reads this when deploying; it must name the setting and what is allowed."""
    given = {"name": "orders", "address": "orders@example.com", **settings}
    with pytest.raises(Misdeclared, match=text):
        Workflow(given.pop("name"), **given)


def test_a_workflow_is_kept_warm_only_where_it_says_so() -> None:
    """And who says nothing keeps the hash of its definition."""

    def declared(flow: Workflow) -> bytes:
        @flow.run
        async def order(mail: object) -> None: ...

        return msgspec.json.encode(flow.declared())

    assert b'"warm":true' in declared(a_workflow(warm=True))
    assert b"warm" not in declared(a_workflow())


def _generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (42, "42 can't be a step"),
        (Declined, "can't be a step"),
        (print, "can't be a step"),
        (lambda: 1, "lambda"),
        (_generator, "generator"),
    ],
)
def test_what_is_no_plain_function_cannot_be_a_step(function: Any, text: str) -> None:
    """A step is named in the log and its result is recorded as a whole."""
    with pytest.raises(Misdeclared, match=text):
        a_workflow().step(function)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"timeout": 3}, "timeout.* doesn't exist yet: bound the work"),
        ({"at_most_once": True}, "at_most_once.* doesn't exist yet"),
        ({"compensate": print}, "compensate.* doesn't exist yet"),
        ({"retry": 3}, "retry.* is no setting"),
        ({"retries": -1}, "retries=-1"),
        ({"retries": True}, "retries=True"),
        ({"raises": Declined}, r"raises=\(Declined,\)"),
        ({"on_drain": "kill"}, "neither 'wait' nor 'cancel'"),
        ({"raises": (BaseException,)}, "exception types"),
        ({"raises": (Declined, Declined)}, "two types of one name"),
    ],
)
def test_a_bad_step_setting_is_refused_in_words(settings: dict[str, Any], text: str) -> None:
    """A setting that is silently ignored would be a promise broken later."""

    def pay() -> None: ...

    with pytest.raises(Misdeclared, match=text):
        a_workflow().step(**settings)(pay)


def test_two_steps_of_one_name_are_refused() -> None:
    """The log tells steps apart by name."""
    flow = a_workflow()

    def pay() -> None: ...

    flow.step(pay)
    with pytest.raises(Misdeclared, match="two steps called pay"):
        flow.step(pay)


def test_a_step_whose_result_cannot_be_read_back_is_refused_when_declared() -> None:
    """Not in the middle of the first run that calls it."""

    def pay() -> "asyncio.Future[int]": ...  # type: ignore[empty-body]  # never called

    with pytest.raises(ValueNotStorable, match="pay"):
        a_workflow().step(pay)


def test_a_workflow_without_a_run_function_is_refused_when_described() -> None:
    """Decorators are easily forgotten; the hint names the one that is missing."""
    with pytest.raises(Misdeclared, match="no run function") as caught:
        a_workflow().declared()
    assert "@orders.run" in caught.value.hint


def test_a_run_function_is_one_plain_function_that_takes_the_mail_or_nothing() -> None:
    """Whatever else it wants, nobody could give it."""
    flow = a_workflow()
    with pytest.raises(Misdeclared, match="wants other arguments"):
        flow.run(lambda mail, more: None)
    with pytest.raises(Misdeclared, match="generator"):
        flow.run(_generator)
    with pytest.raises(Misdeclared, match="wants a function"):
        flow.run(42)  # type: ignore[type-var]  # the point of the test

    @flow.run
    def order() -> int:
        return 7

    assert not flow.asynchronous
    assert flow.body("a mail")() == 7
    with pytest.raises(Misdeclared, match="two run functions"):
        flow.run(lambda mail: None)


def test_a_step_outside_of_any_run_is_its_function() -> None:
    """So a user's own test can call it, without a host and without a run."""
    flow = a_workflow()

    @flow.step
    def double(x: int) -> int:
        return 2 * x

    @flow.step
    async def triple(x: int) -> int:
        return 3 * x

    assert double.function(4) == 8
    assert double(4) == 8  # type: ignore[comparison-overlap]  # typed for the run, where it is awaited
    assert asyncio.run(triple(4)) == 12


def test_in_a_plain_process_a_steps_helpers_do_nothing() -> None:
    """A step that uses them can still be called in a test."""
    assert idempotency_key() == "0" * 64
    progress("half-way")
    assert not isinstance(current(), InStep)


def test_durable_calls_outside_of_a_run_say_so() -> None:
    """Else they would wait for ever."""
    with pytest.raises(NotReplayable, match=r"receive\(\) outside of a run"):
        _ = receive()
    with pytest.raises(NotReplayable, match=r"sleep\(\) outside of a run"):
        _ = sleep("3d")


@pytest.mark.parametrize("duration", [-1, float("nan"), 1e18, "soon", True, None])
def test_what_is_no_duration_is_refused(duration: Any) -> None:
    """A timer that never fires, or fired long ago, is a mistake in the file."""
    with pytest.raises(waypost.Invalid):
        _ = sleep(duration)


def test_a_step_that_may_be_cut_short_says_so_and_all_others_are_declared_as_ever() -> None:
    """The definition's hash is in every run's first event: a setting that nobody uses must not change it."""
    flow = Workflow("orders", address="orders@example.com")

    @flow.step(on_drain="cancel")
    def check(number: int) -> int:
        return number

    @flow.step
    def pay(number: int) -> int:
        return number

    @flow.run
    async def order() -> None: ...

    first, second = flow.declared().steps
    assert (first.on_drain, second.on_drain) == ("cancel", UNSET)
    assert b"on_drain" not in msgspec.json.encode(second)
    assert (check.spec.on_drain, pay.spec.on_drain) == ("cancel", "wait")


def test_secrets_are_asked_for_by_a_step_or_for_all_of_them() -> None:
    """Who asks is what the operator grants; and what asks for none is declared as ever."""
    flow = Workflow("orders", address="orders@example.com", secrets=["ledger", "ledger"])

    @flow.step(secrets=["github"])
    def check() -> None: ...

    @flow.step
    def pay() -> None: ...

    @flow.run
    async def order() -> None: ...

    declared = flow.declared()
    assert declared.asked() == (("@run", "ledger"), ("check", "github"))
    assert b"secrets" not in msgspec.json.encode(declared.steps[1])


@pytest.mark.parametrize("secrets", ["github", ["a b"], [""], [7], 7])
def test_what_is_no_handle_of_a_secret_is_refused(secrets: Any) -> None:
    """A handle stands in a file's name, a command and a message: it is a plain word."""
    with pytest.raises(Misdeclared):
        Workflow("orders", address="orders@example.com", secrets=secrets)
    with pytest.raises(Misdeclared):

        @Workflow("orders", address="orders@example.com").step(secrets=secrets)
        def check() -> None: ...
