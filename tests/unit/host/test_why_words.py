"""`waypost why` as people read it: 80 columns, one sentence, and commands that can be pasted."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from waypost.cli.explaining import SHOWN, WIDTH, ForPeople, all_words, deployment_words, mail_words, run_words
from waypost.host.answers.records import ChildExit, Reason
from waypost.host.answers.why import DeploymentWhy, MailWhy, Why, Whys
from waypost.host.mail.stuck import Stuck, sentence
from waypost.host.reading.deployment_why import fields, told
from waypost.host.reading.explain import Situation
from waypost.model.ids import Deployment
from waypost.model.why import Sentence
from waypost.testing.sayings import parse
from waypost.testing.verbs import verb

AT = "2026-11-29T08:00:00.000Z"
ON = DeploymentWhy(name="orders", state="running", since=AT, waits_for="mail", then="it runs", isolation="none")
RUN = Why(
    run="run_3_00112233445566aa",
    deployment="orders",
    state="parked",
    waits_for="a decision: Pay 420.00 for a very long and wordy purpose? (boss@example.com, deputy@example.com)",
    since=AT,
    until="2026-12-02T08:00:00.000Z",
    then="the run goes on with it; at the deadline its code is told that nothing came",
    command="waypost approve run_3_00112233445566aa --call 'r1#3'",
    alternative="waypost reject run_3_00112233445566aa --call 'r1#3'",
    on=ON,
)


def down(name: str) -> DeploymentWhy:
    return DeploymentWhy(
        name=name,
        state="down",
        code="crash-looping",
        waits_for="somebody to mend it",
        then="it has a process again",
        command=f"waypost reset {name}",
        needed=True,
    )


def test_a_mail_that_cannot_leave_is_said_with_its_deployment() -> None:
    """Else it is in the host's log alone, and whoever waits for the mail never reads that."""
    stuck = Stuck(ordinal=3, to=("ann@example.com",), why="/d/out: No space left on device", since=0, until=60_000)
    outgoing = Reason(**fields(sentence(stuck, Path("/d/my out"))))
    on = msgspec.structs.replace(ON, outgoing=outgoing)
    said = "\n".join(deployment_words(on))
    assert "outgoing mail 3 to ann@example.com to leave, which failed: /d/out: No space left" in " ".join(said.split())
    assert "  next: df -h '/d/my out'" in said
    whys = Whys(hosted=True, deployments=(on,))
    assert "outgoing mail 3" in "\n".join(all_words(whys)), "also where all of them are asked for"
    local = sentence(replace(stuck, blocked=Deployment("stock")), Path("out"))
    assert local.command == "waypost why stock"


def test_a_run_is_one_sentence_the_commands_and_its_deployment() -> None:
    """Wrapped for a terminal; what is to be pasted is whole."""
    lines = list(run_words(RUN))
    assert lines[0] == "run_3_00112233445566aa  orders  parked"
    text = " ".join(lines)
    assert "it waits for a decision: Pay 420.00" in text
    assert "; then the run goes on with it" in text
    assert f"  next: {RUN.command}" in lines
    assert f"    or: {RUN.alternative}" in lines
    assert any(line.startswith("orders is running, since ") for line in lines)
    assert all(len(line) <= WIDTH for line in lines)


def test_who_names_a_data_directory_is_told_commands_that_name_it() -> None:
    """What is pasted must mean the same deployment."""
    (following,) = [line for line in run_words(RUN, ("--data", "/my data")) if "next:" in line]
    assert following == f"  next: {RUN.command} --data '/my data'"
    parse(following.removeprefix("  next: "))


def test_what_has_no_deadline_says_so_and_what_waits_for_nothing_has_none() -> None:
    """Design 3.7: a deadline, or an explicit none."""
    assert "with no deadline" in " ".join(deployment_words(ON))
    ended = msgspec.structs.replace(RUN, waits_for="nothing: it has completed", until=None)
    assert "deadline" not in " ".join(run_words(ended)).partition("; then")[0]


def test_how_the_last_process_ended_is_shown_without_what_steers_a_terminal() -> None:
    """It wrote that itself."""
    exited = ChildExit(generation=4, at=AT, why="exit status 1", stderr=("boom\x1b[2J",))
    lines = list(deployment_words(msgspec.structs.replace(down("orders"), exited=exited)))
    assert lines[0] == "orders  down (crash-looping)"
    assert any("of generation 4: exit status 1" in line for line in lines)
    assert lines[-1] == "    boom\N{REPLACEMENT CHARACTER}[2J"


def test_a_mail_says_where_it_is_and_what_can_be_done() -> None:
    """On hold it needs somebody."""
    mail = MailWhy(
        mail="orders/3",
        deployment="orders",
        place="hold",
        why="id-clash",
        waits_for="somebody",
        then="it is let in",
        command="waypost queue release orders/3",
        alternative="waypost queue reject orders/3",
    )
    lines = list(mail_words(mail))
    assert lines[0] == "orders/3  on hold"
    assert "    or: waypost queue reject orders/3" in lines


def test_of_a_thousand_deployments_those_are_told_that_need_somebody_and_the_rest_is_counted() -> None:
    """A list of a thousand lines is no answer."""
    running = [msgspec.structs.replace(ON, name=f"d{number}") for number in range(1000)]
    lines = list(all_words(Whys(hosted=True, deployments=(down("sick"), *running)), people=ForPeople(asked=0)))
    assert lines[0] == "sick  down (crash-looping)"
    assert "as it should be: 1000 running" in lines[-1]
    assert len(lines) < 6
    sick = tuple(down(f"s{number}") for number in range(SHOWN + 7))
    lines = list(all_words(Whys(hosted=True, deployments=sick), people=ForPeople(asked=0)))
    assert lines[-1] == "and 7 more; `waypost why --json` has them all"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (0, []),
        (1, ["1 run asks something of people: `waypost approvals`"]),
        (1200, ["1,200 runs ask something of people: `waypost approvals`"]),
        (None, ["what runs ask of people: `waypost approvals`"]),
    ],
)
def test_runs_that_wait_for_people_are_not_passed_over_where_all_is_as_it_should_be(
    asked: int | None, said: list[str]
) -> None:
    """The deployment does what it is there for, and somebody is waited for all the same."""
    lines = list(all_words(Whys(hosted=True, deployments=(ON,)), people=ForPeople(asked=asked)))
    assert [line for line in lines if "waypost approvals" in line] == said


@pytest.mark.parametrize(
    ("people", "said"),
    [
        (ForPeople(asked=0, held=1), "1 run or mail is held until somebody lets it go on: `waypost queue hold`"),
        (ForPeople(0, 1200), "1,200 runs and mails are held until somebody lets them go on: `waypost queue hold`"),
    ],
)
def test_what_is_paused_or_on_hold_is_told_beside_a_deployment_that_is_well(people: ForPeople, said: str) -> None:
    """A run whose code ended its process three times waits for somebody, in a deployment that is as it should be."""
    assert list(all_words(Whys(hosted=True, deployments=(ON,)), people=people))[-1] == said


def test_a_run_without_a_host_is_told_so_once() -> None:
    """It waits for a host; "orders is no host" below that is neither news nor English."""
    on = msgspec.structs.replace(ON, state="no host", isolation="")
    lines = list(run_words(msgspec.structs.replace(RUN, on=on)))
    assert [line for line in lines if "orders is" in line] == []
    assert "no host has it up, so no isolation is in force" in lines


def test_without_a_host_or_a_deployment_it_says_so(tmp_path: Path) -> None:
    """And not nothing."""
    assert list(all_words(Whys(hosted=False, deployments=()))) == ["no host runs here, and nothing is deployed"]
    refused = verb("why", data=tmp_path / "nowhere")
    assert (refused.status, "waypost run FILE" in refused.err) == (78, True)


@pytest.mark.parametrize("answer", [RUN, ON, down("orders")])
def test_programs_find_the_same_fields_in_every_answer(answer: Why | DeploymentWhy) -> None:
    """They stay as they are."""
    fields = json.loads(msgspec.json.encode(answer))
    assert {"waits_for", "since", "until", "then", "command", "alternative", "needed"} <= fields.keys()


@given(st.text(max_size=300), st.text(max_size=100), st.text(max_size=40))
@example("a\x1b[2J\nb", "c\x9b\r", "d\n\x07e")
def test_whatever_others_have_written_is_shown_in_lines_that_steer_no_terminal(what: str, why: str, wrote: str) -> None:
    """Titles, errors, what a process wrote at last: all of it comes from outside."""
    found = Situation(
        name="orders",
        address="orders@x",
        hosted=True,
        state="down",
        code="host-fault",
        why=Sentence(waits_for=f"x {what}", then=f"y {why}", command="waypost run", needed=True),
        exited=ChildExit(generation=1, at=AT, why=why, stderr=(wrote,)),
    )
    for line in deployment_words(told(found)):
        assert line.isprintable()
        assert len(line) <= WIDTH or " " not in line.strip() or line.startswith("    ")
