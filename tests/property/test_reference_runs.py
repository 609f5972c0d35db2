"""A generated repository of the reference system, imported, has the same runs, values and mails."""

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from substrate import Reader, SigningKey, verify
from substrate.files.disk import Disk
from substrate.reference.bring import bring
from substrate.reference.source import Source
from substrate.reference.survey import survey
from substrate.settings import Settings
from substrate.storage.readview import open_readonly
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.model.limits import DEFAULT
from waypost.model.times import Now
from waypost.testing import reference as made

KEY = SigningKey.generate()
NAMES = st.from_regex(r"[a-zA-Z0-9_\-]{1,12}", fullmatch=True)
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=20)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=6,
)
ACTS = ("step", "fail", "retry", "sleep", "mail", "approval", "cancel", "child", "odd")


@dataclass
class Theirs:
    """A run there, as it grows: its events, and what must be found of it here."""

    name: str
    events: list[bytes] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)
    values: dict[str, bytes] = field(default_factory=dict)

    def add(self, kind: str, **fields: Any) -> None:
        """One more event."""
        self.events.append(made.event(len(self.events) + 1, kind, **fields))

    def begin(self) -> str:
        """A step of its own."""
        step = f"s{len(self.events)}"
        self.add("StepStarted", stepId=step, attempt=1, input={"ref": "inline:null"})
        return step

    def output(self, step: str, value: Any, *, attempt: int = 1, aside: bool = False) -> None:
        """The step returned; ``aside``: its value lies in a file."""
        raw = made.compact(value)
        name = hashlib.sha256(raw).hexdigest()
        if aside:
            self.values[name] = raw
        reference = f"blob:{name}" if aside else f"inline:{raw.decode()}"
        self.add("StepCompleted", stepId=step, attempt=attempt, output={"ref": reference})
        self.outputs.append(value)


def act(run: Theirs, what: str, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """Something that a run does there."""
    match what:
        case "step":
            run.output(run.begin(), draw(JSON), aside=draw(st.booleans()))
        case "fail":
            text = draw(TEXT)
            run.add("StepFailed", stepId=run.begin(), attempt=1, error={"message": text}, retriesExhausted=True)
            run.faults.append(text)
        case "retry":
            step, text = run.begin(), draw(TEXT)
            run.add("StepFailed", stepId=step, attempt=1, error={"message": text}, retriesExhausted=False)
            run.faults.append(text)
            run.add("TimerSet", stepId=step, timerId=f"t{step}", fireAt=made.moment(59))
            run.add("AttemptScheduled", stepId=step, nextAttempt=2, timerId=f"t{step}", fireAt=made.moment(59))
            run.add("TimerFired", timerId=f"t{step}")
            run.output(step, draw(JSON), attempt=2)
        case "sleep":
            timer = f"t{len(run.events)}"
            run.add("TimerSet", timerId=timer, fireAt=draw(st.sampled_from([made.moment(50), "never", -1])))
            run.add("TimerFired", timerId=timer)
        case "mail":
            name = f"{run.name}.{len(run.events)}@x"
            signal = {"signalName": f"__signal__:{name}", "signalId": f"<{name}>", "payload": made.payload(name)}
            run.add("SignalAwaited", stepId="s", signalName=signal["signalName"], parkKind="input")
            for _ in range(draw(st.integers(1, 2))):
                run.add("SignalReceived", **signal)
            run.mails.append(made.mail(name))
        case "approval":
            run.add("SignalAwaited", stepId="s", signalName="__signal__:a", parkKind="approval")
            run.add("SignalReceived", signalName="__signal__:a", signalId="1", payload={"approved": True})
        case "cancel":
            run.add("CancelRequested", reason=draw(TEXT), origin="self")
        case "child":
            run.add("ChildSpawned", stepId="s", childRunId="c", childDefinitionRef="d")
        case _:
            run.add(draw(NAMES), **draw(st.dictionaries(NAMES.map(lambda name: f"x{name}"), JSON, max_size=3)))


@st.composite
def runs(draw: Any) -> list[Theirs]:
    """A few runs, each with a beginning or without one, ended or live."""
    found: list[Theirs] = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=str.lower)):
        run = Theirs(name)
        begins = draw(st.sampled_from(["mail", "manual", "none"]))
        if begins == "mail":
            run.add("RunStarted", trigger={"payload": made.payload(f"{name}@x")}, consumedMessageId=f"<{name}@x>")
            run.mails.append(made.mail(f"{name}@x"))
        elif begins == "manual":
            run.add("RunStarted", runId=name, trigger={"type": "manual", "payload": None})
        for what in draw(st.lists(st.sampled_from(ACTS), min_size=1, max_size=8)):
            act(run, what, draw)
        end = draw(st.sampled_from(["RunCompleted", "RunFailed", "RunCancelled", ""]))
        if end:
            run.add(end, **({"error": {"message": "bad"}} if end == "RunFailed" else {}))
        found.append(run)
    return found


def repository(where: Path, theirs: list[Theirs], form: Callable[..., dict[str, bytes]]) -> tuple[Path, list[bytes]]:
    """All of it written there, and the mails that wait in its queue."""
    source = made.Reference(where / "theirs.git")
    files: dict[str, bytes] = {}
    for run in theirs:
        files |= form(run.name, run.events)
        files |= {f"runs/{run.name}/blobs/{name}": raw for name, raw in run.values.items()}
    source.commit("main", files)
    waiting = [made.mail(f"w{number}@x") for number in range(len(theirs))]
    came = {_id(raw): raw for run in theirs for raw in run.mails}
    queue: dict[str, bytes] = {}
    for number, (name, raw) in enumerate(came.items()):
        queue |= made.queued(name, made.BEGAN + number, raw)
    source.commit("events", queue)
    after: dict[str, bytes] = {}
    for number, name in enumerate(came):
        after |= made.consumed(name, made.BEGAN + number, "r")
    for number, raw in enumerate(waiting):
        after |= made.queued(_id(raw), made.BEGAN + 1000 + number, raw)
    source.commit("events", after)
    return source.path, waiting


def _id(raw: bytes) -> str:
    return raw.partition(b"Message-ID: <")[2].partition(b">")[0].decode()


@settings(max_examples=4)
@given(runs(), st.sampled_from([made.sealed, made.one_a_file]))
def test_an_imported_repository_has_the_same_runs(theirs: list[Theirs], form: Callable[..., dict[str, bytes]]) -> None:
    """Event by event, value by value, mail by mail; nothing twice, nothing that wasn't there but what says so."""
    with tempfile.TemporaryDirectory() as folder:
        source, waiting = repository(Path(folder), theirs, form)
        found, path = survey(Source.open(source), None, {}), Path(folder) / "ours.git"
        own = Settings(deployment="d", address=made.ADDRESS, message_id=lambda key: f"<{key}@x>")
        now = Now(made.BEGAN + 10_000, 0.0)
        result = bring(path, own, found, key=KEY, disk=Disk(), limits=DEFAULT, now=now, version="0")
        assert found.leaving.named == []
        assert verify(path, KEY.public).faults == ()
        reader = Reader(open_readonly(str(path), KEY.public))
        named = {each.name: each.run for each in result.runs}
        for run in theirs:
            raws = reader.page(named[run.name], after=0, limit=1 << 30).events
            same(run, named[run.name], [ev.decode(raw) for raw in raws], reader)
        queue = sorted(reader.queue(), key=lambda line: line.entry.arrival)
        assert [reader.mail(line.entry.arrival) for line in queue] == waiting


def same(run: Theirs, here: RunId, events: list[ev.AnyEvent], reader: Reader) -> None:
    """A run there and here."""
    hashes = [hashlib.sha256(raw).hexdigest() for raw in run.events]
    assert [each.original for each in events if each.original] == hashes
    outputs = [each.output for each in events if isinstance(each, ev.StepCompleted)]
    assert [_value(each, here, reader) for each in outputs] == run.outputs
    assert [each.error.message for each in events if isinstance(each, ev.StepFailed)] == run.faults
    mails = [each.mail for each in events if isinstance(each, ev.RunStarted | ev.SignalReceived) and each.mail]
    assert [reader.mail(mail.arrival) for mail in mails if mail.id.endswith("@x>")] == run.mails
    extra = [each for each in events if not each.original and not isinstance(each, ev.Foreign)]
    bridges = [each for each in extra if isinstance(each, ev.StepStarted)]
    assert all(each.attempt > 1 for each in bridges)
    beginning = [each for each in extra if isinstance(each, ev.RunStarted)]
    ending = [each for each in extra if isinstance(each, ev.RunFailed)]
    assert len(beginning) == (b'"RunStarted"' not in run.events[0])
    assert len(ending) == (json.loads(run.events[-1])["type"] not in {"RunCompleted", "RunFailed", "RunCancelled"})
    assert len(extra) == len(bridges) + len(beginning) + len(ending)


def _value(value: ev.Value, here: RunId, reader: Reader) -> Any:
    return json.loads(bytes(value.inline) if value.inline else reader.blob(here, str(value.blob)) or b"")
