"""Dispatch of a deployment that mail has woken: it takes up none before its turn, and tells when it has."""

from typing import Any

from actors.draining import Close, Doze, TakeUpMail, TookUp
from actors.messages import GenerationDown, GenerationUp
from ipc.messages import RunStart
from substrate.messages import Claim, Withheld
from waypost.model.ids import Generation
from waypost.testing.dispatch_bench import CHILD, Bench, started

FIRST = Generation(1)
TURN = TakeUpMail(FIRST)


def lined_up(bench: Bench) -> Bench:
    """Its process is there, and it isn't its turn."""
    bench.up(takes="nothing")
    return bench


def test_mail_waits_for_the_turn_and_that_it_is_taken_up_is_told_once() -> None:
    """When it is durable: not with the claim, and not when the take-up is only asked for."""
    bench = lined_up(Bench())
    bench.mail()
    assert not bench.requests
    bench.tell(TURN)
    assert [type(each.what) for each in bench.requests] == [Claim]
    bench.answer()
    bench.answer()
    assert not bench.requests
    assert bench.took_up == []
    bench.flush()
    assert bench.took_up == [TookUp(FIRST)]
    bench.settle()
    assert any(isinstance(each, RunStart) for each in bench.sent)
    bench.mail(2)
    bench.settle()
    assert bench.took_up == [TookUp(FIRST)]


def test_where_there_is_nothing_to_take_up_that_is_told_at_once() -> None:
    """Others wait."""
    bench = lined_up(Bench())
    bench.tell(TURN)
    assert bench.took_up == [TookUp(FIRST)]


def test_what_the_disk_does_not_take_keeps_nobody_waiting() -> None:
    """It is tried again, later."""
    bench = lined_up(Bench())
    bench.mail()
    bench.tell(TURN)
    bench.answer(Withheld("no space"))
    assert bench.took_up == [TookUp(FIRST)]


def test_a_child_that_takes_mail_already_answers_at_once() -> None:
    """And one of another generation hears nothing: its supervisor says it again with the next child."""
    bench = Bench()
    bench.up()
    bench.tell(TakeUpMail(Generation(9)))
    assert bench.took_up == []
    bench.tell(TURN)
    assert bench.took_up == [TookUp(FIRST)]


def test_one_that_waits_for_its_turn_is_not_at_rest() -> None:
    """Its mail is there."""
    bench = lined_up(Bench())
    bench.mail()
    bench.tell(Doze(FIRST))
    assert bench.rested == [None]


def test_one_that_is_to_end_lets_what_has_begun_go_on() -> None:
    """A run that waits for a mail gets it, whoever's turn it is."""
    bench = started()
    bench.tell(GenerationDown(FIRST, unexpected=False))
    bench.up(takes="nothing")
    bench.mail(2, to="<m1@x>")
    bench.settle()
    assert not bench.requests
    bench.tell(Close(Generation(2)))
    assert [type(each.what) for each in bench.requests] == [Claim]


def test_a_generation_says_what_it_takes() -> None:
    """The default is all."""
    up: Any = GenerationUp(FIRST, CHILD)
    assert up.takes == "all"
