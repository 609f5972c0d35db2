"""A child process asks for a child run: what the substrate is asked, and what never gets that far."""

import msgspec
import pytest

from actors.errors import RuleBroken
from actors.logic.child.requests import Request, Requests, answer, commits, take
from ipc.messages import INPUT, CancelRequest, FromChild, SpawnRequest, SpawnResult
from ipc.parse import from_child
from substrate.messages import Done, Refused, SpawnChild, Stage, WorkflowProcess
from waypost.model.ids import CallId, Generation
from waypost.model.limits import DEFAULT
from waypost.testing.childhood import CALL, RUN

GENERATION = Generation(3)
NO = Refused("paused", "the run is paused")


def spawn(number: int = 1, *, call: str = CALL, size: int = 2) -> SpawnRequest:
    """A request with an input of so many bytes."""
    return SpawnRequest(id=number, run=RUN, call=call, workflow="pay", input=b'"' + b"x" * (size - 2) + b'"', seen=4)


def given(request: Request) -> tuple[Requests, SpawnChild, Stage]:
    """The requests after it, and what the substrate is asked."""
    made = take(Requests(), request, generation=GENERATION, limits=DEFAULT)
    (submitted,) = made.submit
    assert isinstance(submitted.what, SpawnChild)
    return made.requests, submitted.what, submitted.stage


def test_a_child_run_is_asked_for_in_the_name_of_the_generation() -> None:
    """Which run and call it is for is checked by the substrate; who asks is the host's to say."""
    requests, asked, stage = given(spawn())
    assert asked == SpawnChild(
        by=WorkflowProcess(GENERATION),
        run=RUN,  # type: ignore[arg-type]  # a plain str
        call=CallId(CALL),
        workflow="pay",
        input=b'""',
        seen=4,
    )
    assert stage is Stage.COMMITTED  # it is begun by a commit of its own, and what that lets out waits for the disk
    assert "x" * 10 not in repr(given(spawn(size=100))[1])
    assert commits(requests, 1, Done(9))
    assert not commits(requests, 1, NO)
    assert answer(requests, 1, Done(9)).say == (SpawnResult(id=1),)
    assert answer(requests, 1, NO).say == (SpawnResult(id=1, refused="the run is paused"),)


def test_a_call_that_cant_be_one_breaks_the_rules() -> None:
    """As with every request that names one."""
    for request in (spawn(call="r0"), CancelRequest(id=1, run=RUN, call="r0", reason="x")):
        with pytest.raises(RuleBroken):
            take(Requests(), request, generation=GENERATION, limits=DEFAULT)


@pytest.mark.parametrize(
    ("request_", "wrong"),
    [
        (spawn(size=INPUT + 1), {}),
        (spawn(), {"seen": -1}),
        (spawn(), {"workflow": "x" * 1001}),
        (spawn(), {"input": 7}),
        (spawn(), {"more": 1}),
    ],
)
def test_a_frame_beyond_its_bounds_is_no_message(request_: SpawnRequest, wrong: dict[str, object]) -> None:
    """A mebibyte of arguments is what a child run may have, and the frame's own type says so."""
    payload = msgspec.to_builtins(request_, builtin_types=(bytes,)) | wrong
    with pytest.raises(msgspec.ValidationError):
        from_child(payload)


def test_the_largest_input_passes() -> None:
    """The bound is the one that an author is told, to the byte."""
    assert DEFAULT.child_input == INPUT
    whole: FromChild = from_child(msgspec.to_builtins(spawn(size=INPUT), builtin_types=(bytes,)))
    assert isinstance(whole, SpawnRequest)
    assert len(whole.input) == INPUT
