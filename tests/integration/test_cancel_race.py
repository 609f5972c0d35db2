"""A cancel that races the end of its run, from two threads at a real repository: one winner, the same for everybody."""

import threading
from pathlib import Path
from typing import Any

from substrate import Reader, Settings, SigningKey, SubstrateActor, message_ids
from substrate.messages import (
    Append,
    BeginGeneration,
    Cancel,
    Claim,
    Done,
    Enqueue,
    Open,
    Refused,
    Submit,
    TakeUp,
    WorkflowProcess,
)
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.clock import ManualClock
from waypost.testing.corrupted import NULL
from waypost.testing.desk import ADDRESS, STARTED, message
from waypost.testing.patience import PATIENCE

RUNS = 20


def test_a_cancel_and_an_end_that_race_have_one_winner_for_every_reader(tmp_path: Path) -> None:
    """Whoever is second is refused; a reader of the disk sees the end that the winner was told."""
    key, path = SigningKey.generate(), tmp_path / "expenses.git"
    settings = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
    actor = SubstrateActor.start(path, settings, key, clock=ManualClock(), limits=Limits())

    def ask(what: Any) -> Any:
        return request(actor, what if isinstance(what, Open) else Submit(what=what), timeout=PATIENCE)

    try:
        ask(Open())
        by = WorkflowProcess(Generation(ask(BeginGeneration()).value))
        ends: dict[RunId, str] = {}
        for number in range(RUNS):
            arrival = ask(Enqueue(message(f"m{number}@x"))).value.arrival
            ask(Claim(arrival))
            run: RunId = ask(TakeUp(arrival=arrival, start=STARTED)).value
            said: dict[str, Any] = {}
            start = threading.Barrier(2)

            def race(name: str, what: Any, said: dict[str, Any] = said, start: threading.Barrier = start) -> None:
                start.wait(PATIENCE)
                said[name] = ask(what)

            racers = [
                threading.Thread(
                    target=race, args=("end", Append(by=by, run=run, events=(ev.RunCompleted(result=NULL),)))
                ),
                threading.Thread(
                    target=race, args=("cancel", Cancel(run=run, reason="x", origin="supervisor-operator"))
                ),
            ]
            for racer in racers:
                racer.start()
            for racer in racers:
                racer.join(PATIENCE)
            won = [name for name, result in said.items() if isinstance(result, Done)]
            (lost,) = (result for result in said.values() if isinstance(result, Refused))
            assert lost.code == ("ended" if won == ["end"] else "cancelling")
            if won == ["cancel"]:
                ask(Append(by=by, run=run, events=(ev.RunCancelled(),)))
            ends[run] = "completed" if won == ["end"] else "cancelled"
    finally:
        actor.stop()
    reader = Reader.open(path, key.public)
    assert {line.run: line.state for line in reader.runs()} == ends
