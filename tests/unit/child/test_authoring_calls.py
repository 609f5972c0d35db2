"""What receive, approve, sleep and send take, and what they refuse before anything is asked of the host."""

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

from waypost import Attachment, Invalid, Mail, NotReplayable, ValueNotStorable, Workflow, approve, progress, send
from waypost.authoring.requests import CallStep, Request, Send
from waypost.authoring.scope import InStep, enter
from waypost.child.program import Asked, Finished, Gave, Raised, Turn
from waypost.child.thread_run import ThreadRun
from waypost.model.mail import parse
from waypost.testing.patience import PATIENCE

MAIL: Mail = parse(b"From: ann@example.com\r\nMessage-ID: <1@x>\r\n\r\nplease\r\n")

flow = Workflow("flow", address="flow@example.com")


@flow.step
def take(what: Any, *more: Any, **named: Any) -> None:
    """Takes anything."""


def first(body: Callable[[], object]) -> Request | BaseException:
    """What a run asks for first, or the error that it ends with."""
    turns: SimpleQueue[Turn] = SimpleQueue()
    run = ThreadRun("a run", body, turns.put)
    run.start(0.0)
    turn = turns.get(timeout=PATIENCE)
    run.drop()
    match turn:
        case Turn((Asked(_, request),), _):
            return request
        case Turn(_, Finished(Raised(error), _)):
            return error
        case _:
            raise AssertionError(turn)


def digest(*args: Any, **kwargs: Any) -> str:
    """Of a step's arguments."""
    request = first(lambda: take(*args, **kwargs))
    assert isinstance(request, CallStep), request
    return request.digest


def test_a_mail_to_send_is_taken_as_it_is_given() -> None:
    """Addresses are normalised, attachments copied, the mail to answer named by its hash."""
    part = Attachment("a.txt", "text/plain", b"x")
    request = first(lambda: send(to=["Ann@EXAMPLE.com"], subject="s", text="t", reply_to=MAIL, attachments=[part]))
    assert isinstance(request, Send)
    assert (request.to, request.subject, request.text) == (("Ann@example.com",), "s", "t")
    assert request.reply_to == MAIL.sha256
    assert [(e.name, e.content_type, e.content) for e in request.attachments] == [("a.txt", "text/plain", b"x")]


def test_an_approval_says_how_to_answer() -> None:
    """The person who gets it may never have heard of Waypost."""
    request = first(lambda: approve("Pay 7?", who="boss@example.com", text="For a taxi."))
    assert isinstance(request, Send)
    assert request.subject == "Pay 7?"
    assert "Pay 7?\n\nFor a taxi.\n\nPlease answer this mail with yes or no" in request.text


@pytest.mark.parametrize(
    "call",
    [
        lambda: send(to=[], subject="s", text="t"),
        lambda: send(to=["a@example.com"] * 101, subject="s", text="t"),
        lambda: send(to="nobody", subject="s", text="t"),
        lambda: send(to="a@example.com", subject="two\nlines", text="t"),
        lambda: send(to="a@example.com", subject="s" * 1001, text="t"),
        lambda: send(to="a@example.com", subject=b"s", text="t"),  # type: ignore[arg-type]  # the point
        lambda: send(to="a@example.com", subject="s", text="\ud800"),
        lambda: send(to="a@example.com", subject="s", text="t" * 300_000),
        lambda: send(to="a@example.com", subject="s", text="", attachments=[Attachment("a", "b/c", bytes(2_000_000))]),
        lambda: send(to="a@example.com", subject="s", text="", attachments=[Attachment("a", "b/c", "x")]),  # type: ignore[arg-type]  # the point
        lambda: send(to="a@example.com", subject="s", text="", attachments=[Attachment("a\nb", "b/c", b"x")]),
        lambda: approve(" ", who="boss@example.com"),
        lambda: approve("two\nlines", who="boss@example.com"),
        lambda: approve("Pay?", who="boss@example.com", deadline="soon"),
    ],
)
def test_what_the_host_would_refuse_is_refused_at_the_line_that_says_it(call: Callable[[], object]) -> None:
    """A frame that breaks a rule would end the child, and every run in it."""
    assert isinstance(first(call), Invalid)


def test_arguments_are_told_apart_by_their_digest_and_not_by_how_they_are_passed() -> None:
    """A replay compares it."""
    assert digest(1, 2) == digest(1, 2)
    assert digest(what=1) == digest(1)
    assert len({digest(1), digest("1"), digest(1, 2), digest([1, 2]), digest(1, x=2)}) == 5


def test_a_mail_takes_part_in_a_digest_by_its_hash() -> None:
    """It may hold megabytes, and it never changes."""
    assert digest(MAIL) == digest({"mail": MAIL.sha256})


def test_arguments_are_copied_when_the_step_is_called() -> None:
    """A step that changes its caller's list would do so live and not in a replay."""
    mine = [1]
    request = first(lambda: take(mine, MAIL))
    assert isinstance(request, CallStep)
    assert request.args[0] == mine
    assert request.args[0] is not mine
    assert request.args[1] is MAIL


def test_an_argument_without_json_form_is_refused_with_its_name() -> None:
    """It could be neither compared nor given again after a crash."""
    error = first(lambda: take([object()]))
    assert isinstance(error, ValueNotStorable)
    assert error.path == "take()['what'][0]"


def test_wrong_arguments_fail_where_the_step_is_called() -> None:
    """As with any function."""
    assert isinstance(first(take), TypeError)  # type: ignore[arg-type]  # the point


def test_a_durable_call_inside_a_step_is_refused() -> None:
    """A step is one event; what it waited for couldn't be replayed."""

    def body() -> object:
        enter(InStep("0" * 64, print))
        return send(to="a@example.com", subject="s", text="t")

    assert isinstance(first(body), NotReplayable)


def test_progress_is_one_line_that_can_travel() -> None:
    """Whatever a step says, it must not break the channel."""
    said: list[str] = []

    def body() -> None:
        enter(InStep("0" * 64, said.append))
        progress("two\nlines \ud800" + "x" * 2000)

    assert first_end(body) == Gave(None)
    assert said[0].startswith("two lines \\ud800x")
    assert len(said[0]) == 1000


def first_end(body: Callable[[], object]) -> object:
    """How a run that asks for nothing ends."""
    turns: SimpleQueue[Turn] = SimpleQueue()
    ThreadRun("a run", body, turns.put).start(0.0)
    rest = turns.get(timeout=PATIENCE).rest
    assert isinstance(rest, Finished)
    return rest.outcome
