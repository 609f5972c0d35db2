"""Exceptions to records and back: total, and the same live and in replay."""

import pytest

from waypost import StepError
from waypost.authoring.steps import declare
from waypost.child import faults
from waypost.model import events as ev
from waypost.model.values import ValueNotStorable


class Declined(Exception):
    """Rebuilt from its args."""


class Special(Declined):
    """A subclass that nobody declared."""


class Demanding(Exception):
    """Can't be rebuilt from the args that it passes on."""

    def __init__(self, amount: int, currency: str) -> None:
        super().__init__(amount + int(currency))


class Mute(Exception):
    """Its text can't be had."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def pay() -> int:
    """A step."""
    return 1


SPEC = declare(pay, retries=0, raises=(Declined, Demanding))


def raised(error: BaseException) -> BaseException:
    """The error, with a traceback of this file."""
    try:
        raise error  # noqa: TRY301 - the traceback is wanted
    except BaseException as caught:  # noqa: BLE001 - any
        return caught


def test_a_fault_says_what_was_raised_where() -> None:
    """The person who reads the log has nothing else."""
    fault = faults.of_step(raised(ValueError("no funds")), SPEC)
    assert (fault.type, fault.message, fault.step) == ("ValueError", "no funds", "pay")
    assert "test_child_faults.py" in fault.traceback
    assert fault.traceback.rstrip().endswith("ValueError: no funds")


@pytest.mark.parametrize(
    "error",
    [
        *(Mute(), ValueError("\ud800"), ValueError("x" * 10**6), KeyboardInterrupt(), ValueError("a\0b")),
        *(ValueError("\ud800" * 10**6), type("Long" * 1000, (Exception,), {})(), type("L" * 1001, (Exception,), {})()),
    ],
    ids=lambda error: type(error).__name__[:20],
)
def test_no_exception_is_too_strange_to_be_recorded(error: BaseException) -> None:
    """Else the step would neither fail nor complete. The row of step_values.jsonl whose str() raises is here."""
    fault = faults.of_step(raised(error), SPEC)
    event = ev.StepFailed(call="r1#1", error=fault, final=True)  # type: ignore[arg-type]  # a literal call id
    assert ev.decode(ev.proposed(event)) == event
    assert len(fault.message) <= faults.MESSAGE
    assert len(fault.traceback) <= faults.TRACEBACK
    again = faults.of_run(faults.rebuilt(fault, SPEC))
    assert (again.type, again.message, again.traceback) == (fault.type, fault.message, fault.traceback)


def test_a_declared_type_is_rebuilt_from_its_args() -> None:
    """So the workflow can tell answers apart by type."""
    again = faults.rebuilt(faults.of_step(raised(Declined("funds", 3)), SPEC), SPEC)
    assert type(again) is Declined
    assert again.args == ("funds", 3)


@pytest.mark.parametrize("error", [Special("x"), Demanding(1, "2"), Declined(object()), ValueError("x")])
def test_what_cannot_be_rebuilt_is_a_step_error(error: Exception) -> None:
    """Live as in replay: never the original object, never half of it."""
    again = faults.rebuilt(faults.of_step(raised(error), SPEC), SPEC)
    assert isinstance(again, StepError)
    assert again.type == type(error).__name__
    assert again.step == "pay"


def test_trying_again_is_pointless_for_answers_and_for_values_that_cannot_be_stored() -> None:
    """The same function would give the same again."""
    assert faults.is_answer(Special(), SPEC)
    assert faults.is_answer(ValueNotStorable("$", "no"), SPEC)
    assert not faults.is_answer(ValueError(), SPEC)


def test_a_step_error_that_escapes_a_run_shows_the_steps_own_error() -> None:
    """The run's end names the step and what it raised, not our wrapping."""
    fault = faults.of_run(raised(StepError(step="pay", type="Timeout", reason="late", traceback="tb")))
    assert (fault.step, fault.type, fault.message, fault.traceback) == ("pay", "Timeout", "late", "tb")
