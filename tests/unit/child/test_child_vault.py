"""Credentials inside a child: who gets one, what a step sees of a rotation, and what leaves without them."""

import copy
import logging
import pickle
from queue import SimpleQueue
from typing import Any

import msgspec
import pytest

from ipc.deliveries import CredentialsUpdated, SourcesUpdated
from ipc.deliveries import Source as Listed
from waypost import NotReplayable, Secret, SecretRefused, Source, ValueNotStorable, Workflow, progress, secret, sources
from waypost.authoring import scope
from waypost.authoring.requests import CallChild, CallStep, Enclosure, Quit, Send
from waypost.authoring.steps import Step
from waypost.child import effects as fx
from waypost.child.bodies import Bodies
from waypost.child.calls import Try
from waypost.child.mailbox import BodyEnded, Note, Reported
from waypost.child.vault import Vault
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.ids import CallId, RunId
from waypost.model.limits import DEFAULT
from waypost.testing.patience import PATIENCE

RUN = RunId("run_1_00112233445566aa")
VALUE = "ghp_0123456789"
NEWER = "ghp_9876543210"
flow = Workflow("orders", address="orders@example.com")


class Declined(Exception):
    """An answer."""


def given(serial: int = 1, value: str = VALUE, **bindings: tuple[str, ...]) -> CredentialsUpdated:
    """A delivery of one credential."""
    return CredentialsUpdated(serial=serial, bindings=bindings, materials={"github": value.encode()})


@flow.child
async def kin(token: str) -> None:
    """Its arguments are kept in the history."""


@flow.step
def measures() -> int:
    """Uses it."""
    return len(secret("github").reveal())


@flow.step
def returns() -> str:
    """Gives it away."""
    return "Bearer " + secret("github").reveal()


@flow.step
def raises_it() -> None:
    """Says it in an error."""
    raise RuntimeError(f"401 for {secret('github').reveal()}")


@flow.step(raises=(Declined,))
def declines() -> None:
    """Says it in the args of an answer."""
    raise Declined(secret("github").reveal())


@flow.step
def reports() -> None:
    """Says it to whoever watches."""
    progress(f"logging in with {secret('github').reveal()}")


@flow.step
async def lists() -> list[str]:
    """Uses the sources."""
    return [f"{each.id} {each.model} {len(each.secret().reveal())}" for each in sources()]


class Place:
    """The bodies of a child that was given something."""

    def __init__(self, *deliveries: CredentialsUpdated | SourcesUpdated) -> None:
        self.mailbox: SimpleQueue[Note] = SimpleQueue()
        self.vault = Vault("orders")
        for each in deliveries:
            self.vault.take(each)
        self.bodies = Bodies(self.mailbox, DEFAULT, self.vault)

    def run(self, step: Step[Any, Any]) -> fx.BodyEnd:
        """Run one try of a step to its end."""
        request = CallStep(step.spec, (), {}, "0" * 64)
        self.bodies.start(RUN, fx.Body(Try(CallId("r1#1"), request, 1), "0" * 64))
        note = self.mailbox.get(timeout=PATIENCE)
        while not isinstance(note, BodyEnded):
            note = self.mailbox.get(timeout=PATIENCE)
        return note.end


def test_a_step_reads_what_it_was_granted() -> None:
    """By its handle, as a text."""
    assert Place(given(measures=("github",))).run(measures) == fx.Completed(b"14")


def test_a_step_that_has_no_grant_fails_for_good_and_is_told_the_command() -> None:
    """An answer, never retried; and what another step may read says nothing to this one."""
    end = Place(given(returns=("github",))).run(measures)
    assert isinstance(end, fx.Errored)
    assert (end.fault.type, end.answer) == ("SecretRefused", True)
    assert "waypost grants set orders measures --secret github" in end.fault.message
    assert VALUE not in repr(end)


def test_what_is_no_handle_is_refused_without_being_repeated() -> None:
    """Somebody may have put the value where the handle belongs."""
    with pytest.raises(SecretRefused) as refused:
        Vault("orders").secret("pay", "hunter2 hunter2")
    assert "hunter2" not in str(refused.value)


def test_a_running_step_sees_the_new_value_when_it_asks_again_and_an_older_delivery_changes_nothing() -> None:
    """Two ways lead here, so two deliveries may cross."""
    vault = Vault("orders")
    vault.take(given(2, NEWER, pay=("github",)))
    vault.take(given(1, VALUE, pay=("github",)))
    assert vault.secret("pay", "github") == NEWER
    vault.take(given(3, VALUE))
    with pytest.raises(SecretRefused):
        vault.secret("pay", "github")


@pytest.mark.parametrize("step", [returns, raises_it, declines], ids=lambda step: step.__name__)
def test_a_delivered_value_leaves_in_no_result_and_no_error(step: Step[Any, Any]) -> None:
    """A result would be kept for ever, so the step fails; an error is kept without the value."""
    place = Place(given(measures=(), returns=("github",), raises_it=("github",), declines=("github",)))
    end = place.run(step)
    assert isinstance(end, fx.Errored)
    assert VALUE not in msgspec.json.encode(end.fault).decode()
    assert "github" in end.fault.message


def test_a_result_that_holds_a_secret_is_an_answer() -> None:
    """The next try would return it, too."""
    end = Place(given(returns=("github",))).run(returns)
    assert isinstance(end, fx.Errored)
    assert (end.fault.type, end.answer) == ("ValueNotStorable", True)


def test_the_value_before_a_rotation_is_hidden_as_well() -> None:
    """It may still open something."""
    place = Place(given(1, VALUE, pay=("github",)), given(2, NEWER, pay=("github",)))
    assert place.vault.hidden(f"{VALUE} {NEWER}") == "[secret github] [secret github]"


def test_progress_leaves_without_it() -> None:
    """Watchers are people."""
    place = Place(given(reports=("github",)))
    request = CallStep(reports.spec, (), {}, "0" * 64)
    place.bodies.start(RUN, fx.Body(Try(CallId("r1#1"), request, 1), "0" * 64))
    note = place.mailbox.get(timeout=PATIENCE)
    assert isinstance(note, Reported)
    assert note.text == "logging in with [secret github]"
    place.mailbox.get(timeout=PATIENCE)


def test_sources_come_in_order_each_with_what_it_wants_to_be_asked_with() -> None:
    """The default is the first."""
    listed = [
        Listed(id=name, provider="p", model=name.upper(), base_url="https://x", credential="github")
        for name in ("main", "spare")
    ]
    place = Place(given(lists=("github",)), SourcesUpdated(serial=1, sources=tuple(listed)))
    assert place.run(lists) == fx.Completed(b'["main MAIN 14","spare SPARE 14"]')
    place.bodies.close()


def test_a_step_that_asks_for_a_source_where_there_is_none_is_told_where_to_list_one() -> None:
    """There has to be at least one where any is asked for."""
    place = Place(given(lists=("github",)))
    end = place.run(lists)
    assert isinstance(end, fx.Errored)
    assert "[[sources]]" in end.fault.message
    place.bodies.close()


def test_a_source_without_a_credential_says_so() -> None:
    """A model on this machine wants none."""
    with pytest.raises(SecretRefused, match="needs no credential"):
        Source(id="own", provider="p", model="m", base_url="", credential="").secret()


def test_outside_of_a_step_there_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is replayed: a value that changes would make it another run."""
    with pytest.raises(SecretRefused, match="started by no host"):
        secret("github")
    with pytest.raises(SecretRefused, match="model source"):
        sources()
    monkeypatch.setattr(scope._Process, "without", scope.Stray())
    with pytest.raises(NotReplayable):
        secret("github")
    with pytest.raises(NotReplayable):
        sources()
    with pytest.raises(Invalid):
        secret(Secret("x"))  # type: ignore[arg-type]  # what a user may try


def test_a_secret_shows_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever somebody does with it by mistake."""
    one = Secret(VALUE)
    logging.getLogger("flow").warning("with %s, %r and %s", one, one, {"token": one})
    assert VALUE not in f"{one} {one!r} {[one]}" + caplog.text
    for leak in (msgspec.json.encode, pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(one)
    assert one == Secret(VALUE)
    assert one != Secret(NEWER)
    assert one != VALUE


def test_a_run_that_got_hold_of_a_value_neither_ends_with_it_nor_mails_it() -> None:
    """By a global variable, say: its own code is given none."""
    vault = Vault("orders")
    vault.take(given(1, VALUE, pay=("github",)))
    stolen = msgspec.json.encode({"token": VALUE})
    end = vault.clean(ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(stolen))))
    assert isinstance(end, ev.RunFailed)
    assert end.error.type == "ValueNotStorable"
    for failed in (ev.RunFailed, ev.RunCancelled):
        ended = vault.clean(failed(error=ev.Fault(type="E", message=f"no {VALUE}")))
        assert "no [secret github]" in ev.proposed(ended).decode()
    assert vault.held_by(Send(("a@x.example",), "s", f"the token is {VALUE}")) == "github"
    assert vault.held_by(Send(("a@x.example",), "s", "hello")) == ""
    assert vault.held_by(Send((f"{VALUE}@x.example",), "s", "hello")) == "github"
    assert vault.held_by(CallChild(kin.spec, b'{"token":"%s"}' % VALUE.encode(), "0" * 64)) == "github"
    assert vault.held_by(CallChild(kin.spec, b'{"token":"none"}', "0" * 64)) == ""
    assert vault.held_by(Quit(f"the token {VALUE} is bad")) == ""  # its reason goes out without the value
    for part in (
        Enclosure(VALUE, "a/b", b""),
        Enclosure("n", f"a/{VALUE}", b""),
        Enclosure("n", "a/b", VALUE.encode()),
    ):
        assert vault.held_by(Send(("a@x.example",), "s", "hello", attachments=(part,))) == "github"
    shown = ev.SignalAwaited(call=CallId("r1#1"), park="approval", title="?", snapshot=msgspec.Raw(stolen), seen=1)
    assert vault.held_by_any((shown,)) == "github"
    assert Vault("orders").held_by_any((shown,)) == ""
    plain = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1")))
    assert vault.clean(plain) is plain


def test_a_secret_is_no_value_of_a_step() -> None:
    """Neither given to one nor returned by one."""

    @flow.step
    def returns_one() -> Any:
        return [secret("github")]

    end = Place(given(returns_one=("github",))).run(returns_one)
    assert isinstance(end, fx.Errored)
    assert end.fault.type == "ValueNotStorable"
    with pytest.raises(ValueNotStorable, match="a Secret has no JSON form"):
        returns_with._request((Secret(VALUE),), {})


@flow.step
def returns_with(_token: object) -> None:
    """Takes an argument."""
