"""What `waypost top` shows: of a thousand deployments as of one, in a terminal's width; what isn't known is said so."""

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.describing import Budget, Description
from actors.messages import DeploymentSpec
from substrate.messages import Census
from waypost.cli.fitting import cut, laid_out, padded, width
from waypost.cli.top import HEADINGS, duration, fitted, lines, unobserved
from waypost.host.answers.top import Top, TopRow
from waypost.host.messages import Deployed
from waypost.host.watching.histogram import Recent
from waypost.host.watching.observer_logic import State, Watched
from waypost.host.watching.top import top
from waypost.model.ids import Deployment, Generation
from waypost.model.limits import DEFAULT
from waypost.model.times import Now
from waypost.model.why import Sentence

NOW = Now(wall=1_795_939_200_000, mono=100.0)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60)


def deployed(name: str, state: str = "running", **more: Any) -> Deployed:
    """A deployment as the root knows it."""
    spec = DeploymentSpec(
        name=Deployment(name), address=f"{name}@example.com", definition="d", code="c", file="f", steps=(), mail_to=(),
        runs="thread", env=(), python="3", waypost="0",
    )  # fmt: skip
    told = {"reason": "", "generation": Generation(3), "pid": 1, "until": None, **more}
    return Deployed(
        spec, Description(name=spec.name, address=spec.address, state=state, isolation="none", **told), None
    )


def watched(**more: Any) -> Watched:
    """What the observer knows of one."""
    census = Census(
        waiting=((("approval",), 2), (("approval", "timer"), 1)), queued=4, on_hold=1, rejected=2, outbox=0,
        deadlines=1, next=NOW.wall + 3 * 3_600_000,
    )  # fmt: skip
    return Watched(census=census, recent=Recent().add([0.0015] * 10), **more)


def shown(*deployments: Deployed, **known: Watched) -> Top:
    """The host's answer."""
    state = State(deployments={Deployment(name.replace("_", "-")): one for name, one in known.items()})
    return top(deployments, state, DEFAULT, NOW)


def test_a_row_says_what_runs_wait_on_and_how_the_deployment_is() -> None:
    """In a line, as an operator reads it, and as a program does."""
    answer = shown(deployed("expenses", budget=Budget((0.0,), 90.0)), expenses=watched())
    heading, row = list(lines(answer, None))[1:]
    assert heading.split() == [word for heading in HEADINGS for word in heading.split()]
    assert row.split() == ["expenses", "3", "running", "3", "approval,", "1", "timer", "4", "2.0ms", "2", "3h"]
    record = msgspec.json.decode(msgspec.json.encode(answer.deployments[0]))
    assert record == {
        "deployment": "expenses", "address": "expenses@example.com", "state": "running", "code": "", "reason": "",
        "needed": False, "generation": 3, "live": 3, "waiting": {"approval": 3, "timer": 1}, "queued": 4,
        "on_hold": 1, "rejected": 2, "outbox": 0, "flush_p99": pytest.approx(0.002, rel=0.1), "crash_budget": 2,
        "deadline": "2026-11-29T11:00:00.000Z",
    }  # fmt: skip


def test_what_is_not_known_is_said_to_be_so() -> None:
    """A nought would be a lie: nobody has counted a deployment that has never been up, or there is nobody to count."""
    answer = top([deployed("expenses", "starting")], None, DEFAULT, NOW)
    row = answer.deployments[0]
    assert (row.waiting, row.queued, row.flush_p99, row.deadline) == (None, None, None, None)
    assert not answer.observed
    assert "observer has ended" in next(unobserved(answer))
    assert list(lines(answer, None))[-1].split() == ["expenses", "3", "starting", "?", "?", "-", "3", "-"]
    assert not list(unobserved(shown(deployed("expenses"))))


def test_a_dormant_deployment_shows_when_it_is_woken() -> None:
    """What was counted when it was up still holds, but for the time that the root knows."""
    answer = shown(deployed("sleeps", "dormant", until=NOW.wall + 90_000), sleeps=watched())
    assert list(lines(answer, None))[-1].split()[-1] == "1m"


def test_the_crash_budget_is_that_of_this_moment() -> None:
    """An exit is forgotten with time, and nobody tells of that; one that is latched has none left."""
    rows = shown(
        deployed("fresh", budget=Budget()),
        deployed("just", budget=Budget((0.0, 5.0), 99.0)),
        deployed("stable", budget=Budget((0.0, 5.0), 10.0)),
        deployed("latched", "down", code="crash-looping"),
    ).deployments
    assert {row.deployment: row.crash_budget for row in rows} == {"fresh": 3, "just": 1, "stable": 3, "latched": 0}


def test_who_needs_somebody_comes_first() -> None:
    """A screen has twenty lines, and a host a thousand deployments."""
    act = Sentence(waits_for="somebody", then="it goes on", command="waypost resume c", needed=True)
    looping, held = deployed("b", "down", code="crash-looping", why=act), deployed("c", "held", why=act)
    answer = shown(deployed("a"), looping, held, deployed("d"))
    assert [line.split()[0] for line in lines(answer, 80)][2:] == ["b", "c", "a", "d"]
    assert "crash-looping" in list(lines(answer, 80))[2]
    assert "4 deployments: 2 running, 1 down, 1 held" in next(lines(answer, 80))


def test_one_that_runs_and_is_hindered_comes_before_those_that_are_as_they_should_be() -> None:
    """Its process is there, and nothing begins: among a thousand that run nobody would find it."""
    mend = Sentence(waits_for="code that loads", then="its runs go on", command="waypost deploy x.py", needed=True)
    answer = shown(
        deployed("asleep", "dormant"),
        deployed("fine"),
        deployed("full", code="disk-full"),
        deployed("odd", code="broken-code", why=mend),
        deployed("starts", "starting"),
    )
    rows = [line.split() for line in lines(answer, 80)][2:]
    assert [row[0] for row in rows] == ["odd", "full", "starts", "asleep", "fine"]
    assert [row[2] for row in rows] == ["broken-code", "disk-full", "starting", "dormant", "running"]


@settings(max_examples=8, deadline=None)
@given(
    columns=st.integers(20, 200),
    name=st.text("abcdefgh-", min_size=1, max_size=63),
    reason=TEXT,
    kinds=st.dictionaries(TEXT, st.integers(0, 10**9), max_size=6),
)
def test_no_line_is_wider_than_the_terminal_and_none_steers_it(
    columns: int, name: str, reason: str, kinds: dict[str, int]
) -> None:
    """Names are long, and a later host may have words that we don't know."""
    row = msgspec.structs.replace(
        shown(deployed(name), x=watched()).deployments[0], waiting=kinds, reason=reason, queued=10**9
    )
    answer = Top(at="2026-11-29T08:00:00.000Z", observed=True, deployments=(row,))
    for line in lines(answer, columns):
        assert width(line) <= columns
        assert line.isprintable()


def test_a_thousand_deployments_are_one_answer() -> None:
    """It is made of what is known: no question to any of them, and not much memory."""
    several = [deployed(f"number-{number}") for number in range(1000)]
    state = State(deployments={each.spec.name: watched() for each in several})
    tracemalloc.start()
    answer = top(several, state, DEFAULT, NOW)
    raw = msgspec.json.encode(answer)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(msgspec.json.decode(raw, type=Top).deployments) == 1000
    assert peak < 8 * 2**20
    assert len(list(lines(answer, 80))) == 1002


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0008, "0.8ms"), (0.0123, "12ms"), (0.9999, "999ms"), (3.44, "3.4s"), (59.9, "59s"), (60, "1m"),
        (3599, "59m"), (7200, "2h"), (90 * 86_400, "90d"), (36_500 * 86_400, "36500d"),
    ],
)  # fmt: skip
def test_a_time_is_short(seconds: float, said: str) -> None:
    """A column has six characters."""
    assert duration(seconds) == said


@given(text=TEXT, columns=st.integers(0, 40))
def test_what_is_cut_fits(text: str, columns: int) -> None:
    """Characters of two columns, and of none, too."""
    assert width(cut(text, columns)) <= columns
    assert width(padded(text, columns)) == columns
    assert cut(text, width(text)) == text


@given(text=TEXT, columns=st.integers(12, 40), indent=st.integers(0, 8))
def test_what_is_laid_out_over_lines_loses_nothing(text: str, columns: int, indent: int) -> None:
    """But for the blanks at which it is broken."""
    found = list(laid_out(text, columns, indent))
    assert all(width(line) <= columns for line in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_row_of_another_version_is_read() -> None:
    """A later host may say more."""
    row = shown(deployed("expenses")).deployments[0]
    more = {**msgspec.to_builtins(row), "more": 1}
    assert msgspec.json.decode(msgspec.json.encode(more), type=TopRow) == row


@pytest.mark.parametrize("rows", [1, 2, 3, 9, 10, 11, 12])
def test_on_a_low_screen_no_line_scrolls_away_and_all_are_counted(rows: int) -> None:
    """Each ends its line, so the last row is for the cursor; what isn't shown is told by its number."""
    drawn = [str(number) for number in range(10)]
    shown = fitted(drawn, 80, rows)
    assert len(shown) <= max(1, rows - 1)
    if rows > len(drawn):
        assert shown == drawn
    else:
        assert shown == [*drawn[: len(shown) - 1], f"{10 - len(shown) + 1} more: waypost top --once"]
