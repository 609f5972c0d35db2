"""docs/why.md: what it shows is what is said, and what it tells people to run can be run."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from actors.describing import Exited, ExitReason
from actors.logic.supervisor.down import KNOWN
from actors.logic.supervisor.states import State
from actors.logic.supervisor.words import describe
from waypost.cli.explaining import deployment_words, run_words
from waypost.host.answers.why import DeploymentWhy, MailWhy, Why, Whys
from waypost.host.reading.deployment_why import told
from waypost.host.reading.explain import Situation, Told
from waypost.host.reading.run_why import why
from waypost.host.reading.status import exit_of
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.times import stamp, unstamp
from waypost.testing.sayings import parse
from waypost.testing.supervision import BOOKS, LATCHED, RUNNING, SETUP, STATES, a_spec, ledger_of_a_step

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "why.md").read_text(encoding="utf-8")
AT = unstamp("2026-11-29T08:00:00.000Z")
RUN = RunId("run_3_00112233445566aa")
CALL = CallId("r1#3")


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times are shown as clocks show them here: for the page that is UTC."""
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    assert os.environ.get("TZ") == before
    time.tzset()


def shown(mark: str) -> str:
    """A block of the page."""
    (block,) = re.findall(rf"<!-- {mark} -->\n```\n(.*?)```", PAGE, re.DOTALL)
    return str(block)


def situation(state: State, entered: int) -> Situation:
    """The deployment of the page, with its supervisor in this state."""
    setup = replace(SETUP, spec=a_spec("expenses"))
    books = replace(
        BOOKS,
        entered=entered,
        exited=Exited(Generation(3), AT, "ended by SIGKILL", ExitReason(stderr=("ledger.db: disk I/O error",))),
    )
    found = describe(setup, replace(state, books=books))
    return Situation(
        name="expenses",
        address="expenses@example.com",
        hosted=True,
        state=found.state,
        code=found.code,
        isolation="none",
        why=found.why,
        exited=exit_of(found),
    )


def test_the_run_of_the_page_is_said_like_that() -> None:
    """Whoever reads it there finds it in the terminal."""
    wait = fold.Wait(
        park="approval",
        title="Pay 420.00 for a desk?",
        who=("boss@example.com",),
        request="<r@w>",
        timeout_at=unstamp("2026-12-02T08:00:05.000Z"),
        since=stamp(AT),
    )
    ledger = fold.Ledger(
        run=RUN, seq=5, drive=4, seen=4, generation=Generation(3), attempts=0, started=STARTED, waits={CALL: wait}
    )
    run = Told(RUN, fold.Parked(ledger), (), {CALL: "2026-11-29T08:00:05.000Z"}, None, "")
    answer = why(run, situation(RUNNING, AT - 60_000))
    assert "\n".join(run_words(answer)) + "\n" == shown("run")


STARTED = ledger_of_a_step("pay").started


def test_the_deployment_of_the_page_is_said_like_that() -> None:
    """The same."""
    (looping,) = (each for each in STATES if type(each).__name__ == "CrashLooping")
    assert "\n".join(deployment_words(told(situation(looping, AT)))) + "\n" == shown("deployment")
    assert LATCHED.detail in " ".join(shown("deployment").split())


def test_every_command_of_the_page_can_be_run() -> None:
    """With its capitals as they are."""
    commands = re.findall(r"`(waypost [^`]*)`", PAGE) + [
        re.split(r"\s{2,}", line)[0] for line in re.findall(r"^(?:  next: |    or: )?(waypost .*)$", PAGE, re.MULTILINE)
    ]
    assert len(commands) > 15
    for each in commands:
        parse(each)


def test_every_reason_to_be_down_is_on_the_page() -> None:
    """And every state that needs somebody."""
    for code in KNOWN:
        assert f"({code})" in PAGE, code
    needy = {(found.state, found.code) for state in STATES if (found := describe(SETUP, state)).why.needed}
    for state, code in needy - {("stopped", "")}:  # that is of a host which ends
        assert f"`{state} ({code})`" in PAGE or f"`{state}`" in PAGE or f"({code})" in PAGE, (state, code)


@pytest.mark.parametrize("kind", [Why, DeploymentWhy, MailWhy, Whys])
def test_every_field_is_on_the_page(kind: type) -> None:
    """Programs rely on it."""
    for field in kind.__struct_fields__:  # type: ignore[attr-defined]  # they are structs
        assert f"`{field}`" in PAGE, field
