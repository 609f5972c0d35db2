"""What there is, counted: by the derived index and what was touched since, as if every run had been looked at."""

import sqlite3
from collections import Counter
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from substrate.messages import Census, Pause, ReadCensus, ReadDeadlines
from substrate.questions import answer
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.waiting import kinds_of
from waypost.testing.desk import Desk, call, message

NULL = ev.Value(inline=msgspec.Raw(b"null"))


def looked(desk: Desk) -> Census:
    """The same by looking at every run, mail and deadline."""
    waiting = Counter(kinds_of(known.run) for known in desk.live().values())
    found = answer(desk.index, ReadDeadlines(limit=1000)).found
    return Census(
        waiting=tuple(sorted(waiting.items())),
        queued=len(desk.index.queue),
        on_hold=len(desk.index.on_hold),
        rejected=desk.index.state.rejected,
        outbox=len(desk.index.outbox),
        deadlines=len(found),
        next=found[0].fire_at if found else None,
    )


@settings(max_examples=10, deadline=None)
@given(deeds=st.lists(st.sampled_from(["run", "wait", "time", "pause", "end", "settle", "mail"]), max_size=20))
def test_a_census_counts_what_there_is_wherever_it_is_known(deeds: list[str]) -> None:
    """A run is in the index, in memory, or in both in different states; it is counted once, as it is now."""
    desk = Desk()
    desk.begin()
    desk.start(message("m0@x"))
    for number, deed in enumerate(deeds, 1):
        live = [run for run in desk.live() if not isinstance(desk.index.known(run).run, fold.Paused)]
        match deed:
            case "run":
                desk.start(message(f"m{number}@x"))
            case "mail":
                desk.enqueue(message(f"m{number}@x"))
            case "settle":
                desk.settle()
            case _ if not live:
                continue
            case "wait":
                asked = ev.SignalAwaited(call=call(number), park="input", seen=0, timeout=60.0 + number)
                desk.append(live[-1], asked)
            case "time":
                desk.append(live[-1], ev.TimerSet(call=call(number), timer=f"r1#{number}", delay=5.0, seen=0))
            case "pause":
                desk.must(Pause(run=live[-1], code="operator", detail=""))
            case _:
                desk.append(live[-1], ev.RunCompleted(result=NULL))
        assert answer(desk.index, ReadCensus(0)) == looked(desk)
    desk.settle()
    assert answer(desk.index, ReadCensus(0)) == looked(desk)


def test_what_waits_is_told_by_kind_and_a_run_that_waits_on_two_things_is_told_under_both() -> None:
    """Who looks at one line wants to know how many approvals there are, not which of their runs also has a timer."""
    several = Census(
        waiting=((("approval",), 2), (("approval", "timer"), 1), (("mail",), 3)),
        queued=0, on_hold=0, rejected=0, outbox=0, deadlines=1, next=5,
    )  # fmt: skip
    assert several.live == 6
    assert several.waits() == {"approval": 3, "mail": 3, "timer": 1}


def test_an_index_from_before_there_was_a_census_is_built_again(tmp_path: Path) -> None:
    """Its table has a column less: nobody is told of that, and nothing is counted wrongly."""
    file = tmp_path / "runs.sqlite"
    base = sqlite3.connect(file)
    base.execute(
        "create table run(ordinal integer primary key, id text not null, stage integer not null, root text, card blob)"
    )
    base.close()
    desk = Desk()
    desk.begin()
    desk.start(message("m0@x"))
    desk.reopen(desk.tree, file)
    assert answer(desk.index, ReadCensus(0)) == looked(desk)
    desk.index.close()
