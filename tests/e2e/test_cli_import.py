"""``waypost import`` as its users meet it: looked at first, done, held, and going on with the mail that waited."""

import contextlib
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from waypost.testing import reference as made
from waypost.testing.host_here import HostHere
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

WORKFLOW = f'''
from waypost import Mail, Workflow

desk = Workflow("desk", address="{made.ADDRESS}")

@desk.step
def size(mail: Mail) -> int:
    """Count."""
    return len(mail.text)

@desk.run
async def count(mail: Mail) -> int:
    """Count."""
    return await size(mail)
'''


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A deployment there: one run, live; one mail that waits, in its thread; a step's grants; a conversation."""
    source = made.Reference(tmp_path / "theirs.git")
    run = [
        made.event(1, "RunStarted", runId="a", trigger={"payload": made.payload("a@x")}, consumedMessageId="<a@x>"),
        made.event(2, "SignalAwaited", stepId="s", signalName="__signal__:c", parkKind="input"),
    ]
    source.commit("main", {**made.one_a_file("a", run), "agent-state/s/turns.jsonl": b"{}\n"})
    source.commit("events", made.queued("a@x", made.BEGAN, made.mail("a@x")))
    waiting = made.queued("b@x", made.BEGAN + 1, made.mail("b@x", answers="a@x"))
    source.commit("events", {**waiting, **made.consumed("a@x", made.BEGAN, "a")})
    agent = made.Reference(tmp_path / "agent.git")
    agent.commit("main", {"state/grants.json": b'{"grants":[]}'})
    return source.path


def test_an_import_is_looked_at_done_and_then_goes_on_with_what_waited(theirs: Path, tmp_path: Path) -> None:
    """The whole way of somebody who moves: no mail is lost, none is answered by a run that isn't here."""
    data, file = tmp_path / "data", tmp_path / "desk.py"
    file.write_text(WORKFLOW)
    grants = ("--grants", f"s={tmp_path / 'agent.git'}")
    said = verb("import", str(theirs), "--name", "desk", *grants, "--dry-run", data=data)
    assert (said.status, "nothing was written" in said.out, data.exists()) == (2, True, False)
    assert "agent-state/s/turns.jsonl: an agent's conversation has no place here" in said.err

    done = verb("import", str(theirs), "--name", "desk", *grants, data=data)
    assert done.status == 2
    assert "a, 4 events; it was live there, and is ended here" in done.out
    assert "1 in the inbox" in done.out
    assert "waypost resume desk" in done.out
    assert (verb("verify", data=data).status, verb("fsck", data=data).status) == (0, 0)
    (listed,) = [row for row in json.loads(verb("runs", "--json", data=data).out)["runs"] if row["state"] == "failed"]
    shown = verb("show", listed["run"], data=data)
    assert "imported from interchange, where it was a" in shown.out
    assert "kept as it was: its log, part 1" in shown.out
    assert "waited for __signal__:c; its program can't go on here" in shown.out

    again = verb("import", str(theirs), "--name", "desk", data=data)
    assert (again.status, "already" in again.err, "--name" in again.err) == (1, True, True)

    with HostHere(file, data=data) as host:
        host.wait_for("desk is held")
        resumed = verb("resume", "desk", "--yes", data=data)
        assert (resumed.status, "held" in resumed.out, "1 mail " in resumed.out) == (0, True, True)
        host.wait_for("completed")
    assert f"after {listed['run']}" in verb("show", "run_2", data=data).out
    assert (verb("verify", data=data).status, verb("fsck", data=data).status) == (0, 0)


def test_the_examples_of_the_page_do_what_they_say(theirs: Path, tmp_path: Path) -> None:
    """They are what somebody who moves will paste."""
    page = (Path(__file__).parents[2] / "docs" / "import.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    examples = [re.split(r" {2,}", line)[0].split()[1:] for line in block.splitlines()]
    assert len(examples) > 3
    for number, example in enumerate(examples):
        done = verb(*example, data=tmp_path / f"data{number}", cwd=theirs.parent)
        assert (done.status, "not taken over: 1" in done.err) == (2, True), (example, done)


@pytest.mark.parametrize(
    "moments", [pytest.param(2, id="some"), pytest.param(40, id="many", marks=pytest.mark.torture)]
)
def test_an_import_that_is_killed_leaves_nothing_half(moments: int, theirs: Path, tmp_path: Path) -> None:
    """Kill -9 of the command itself: the same command again makes it whole, whenever it was."""
    seed = random.SystemRandom().randrange(1 << 30)
    rng, span = random.Random(seed), 0.0
    for number in range(moments + 1):
        data = tmp_path / f"data{number}"
        begun = time.monotonic()
        process = importing(theirs, data)
        if not number:  # nobody disturbs the first one: it says how long one takes
            assert process.wait() == 2
            span = time.monotonic() - begun
            continue
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.3, 1.0) * span)
        process.kill()
        process.wait()
        whole = (data / "repos" / "desk.git").exists()
        again = verb("import", str(theirs), "--name", "desk", data=data)
        assert again.status == (1 if whole else 2), f"seed {seed}: {again}"
        assert verb("verify", data=data).status == 0, f"seed {seed}"
        listed = json.loads(verb("runs", "--json", data=data).out)["runs"]
        assert sorted(row["state"] for row in listed) == ["failed", "queued"], f"seed {seed}"


def importing(source: Path, data: Path) -> subprocess.Popen[bytes]:
    """The command, in a process of its own."""
    command = [sys.executable, "-m", "waypost.cli.main", "import", str(source), "--name", "desk", "--data", str(data)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_what_is_wrong_with_an_import_is_said_in_words(theirs: Path, tmp_path: Path) -> None:
    """Each mistake with its exit code, and what to write instead."""
    data = tmp_path / "data"
    for arguments, status, words in (
        ((str(theirs),), 64, "--name"),
        ((str(theirs), "--name", "No Name"), 64, "1 to 63 characters"),
        ((str(theirs), "--name", "desk", "--grants", "s"), 64, "--grants STEP=REPOSITORY"),
        ((str(theirs), "--name", "desk", "--address", "nobody"), 64, "'@'"),
        ((str(tmp_path), "--name", "desk"), 65, "no git repository"),
        ((str(tmp_path / "agent.git"), "--name", "desk"), 65, "--grants STEP=REPOSITORY"),
    ):
        refused = verb("import", *arguments, data=data)
        assert (refused.status, words in refused.err) == (status, True), refused.err
        assert not data.exists()


def test_where_several_addresses_have_mail_one_is_asked_for(tmp_path: Path) -> None:
    """It is a repository that can be imported: only a word is missing in the command."""
    source = made.Reference(tmp_path / "theirs.git")
    other = made.queued("c@x", made.BEGAN, made.mail("c@x"), address="other@bench.example")
    source.commit("main", {"runs/.keep": b""})
    source.commit("events", {**made.queued("b@x", made.BEGAN, made.mail("b@x")), **other})
    refused = verb("import", str(source.path), "--name", "desk", data=tmp_path / "data")
    assert (refused.status, "no repository" in refused.err) == (64, False)
    assert f"it has mail for other@bench.example, {made.ADDRESS}" in refused.err
    assert "say by --address whose mail" in refused.err
