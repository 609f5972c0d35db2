"""``waypost grants``, as it is pasted from its page: every example does what it says, and every misuse is told."""

import json
import re
import shlex
from pathlib import Path

import pytest

from waypost.testing.host_process import HostProcess
from waypost.testing.patience import eventually
from waypost.testing.verbs import Done, verb

PAGE = (Path(__file__).parents[2] / "docs" / "grants.md").read_text(encoding="utf-8")
WORKFLOW = """
from waypost import Mail, SendRefused, Workflow, receive, secret, send

expenses = Workflow("expenses", address="expenses@example.com", mail_to=["boss@example.com"])

@expenses.step(secrets=["github"])
def size() -> int:
    return len(secret("github").reveal())

@expenses.run
async def expense(mail: Mail) -> str:
    length = await size()
    await send(to="boss@example.com", subject="s", text="t")
    await receive()
    try:
        await send(to="boss@example.com", subject="again", text="t")
    except SendRefused as refused:
        return f"{length}: {refused}"
    return "sent again"
"""

MISUSED = (
    (("set", "expenses"), 64, "nothing was named"),
    (("set", "nobody", "--mail", "a@x.example"), 64, "no deployment here is called"),
    (("set", "expenses", "open_isue", "--secret", "github"), 1, "its steps: open_issue"),
    (("set", "expenses", "open_issue", "--mail", "a@x.example"), 1, "the run function does"),
    (("set", "expenses", "--mail", "*@*"), 64, "host name"),
    (("set", "expenses", "--mail", "*@example"), 64, "the only pattern"),
    (("set", "expenses", "--secret", "a b"), 64, "no handle of a secret"),
    (("set", "expenses", "--workflow", "Not One"), 64, "is no name of a child workflow"),
    (("show", "expenses", "open_isue"), 64, "has no step"),
    (("show", "nobody"), 64, "no deployment here is called"),
)

HOLDING = """
import time
from pathlib import Path
from waypost import Mail, SecretRefused, Workflow, secret

expenses = Workflow("expenses", address="expenses@example.com")

@expenses.step(secrets=["github"])
def holds() -> str:
    length = len(secret("github").reveal())
    Path({has!r}).touch()
    while True:
        try:
            secret("github")
        except SecretRefused as refused:
            return f"{{length}}, then refused"
        time.sleep(0.02)

@expenses.run
async def expense(mail: Mail) -> str:
    return await holds()
"""


def mail(name: str, more: str = "") -> bytes:
    """A mail to the workflow."""
    return f"From: ann@example.com\r\nSubject: x\r\nMessage-ID: <{name}@x>\r\n{more}\r\ntext\r\n".encode()


def trusted(folder: Path, data: Path) -> None:
    """The host has a credential of ten letters."""
    token, listed = folder / "token", data / "credentials.toml"
    token.write_text("0123456789")
    listed.write_text(f'[credentials.github]\nfile = "{token}"\n')
    for each in (token, listed):
        each.chmod(0o600)


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Path:
    """A folder with the page's workflow in it."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "expenses.py").write_text(code)
    return tmp_path


def test_the_examples_of_the_page_do_what_they_say(place: Path) -> None:
    """They are what an operator pastes, in this order; the history that they leave is sound."""
    (block,) = re.findall(r"\n\n```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    examples = [shlex.split(re.split(r" {2,}", line)[0])[1:] for line in block.splitlines()]
    data = place / "data"
    done: dict[str, Done] = {}
    for example in examples:
        done[" ".join(example)] = verb(*example, data=data, cwd=place)
        if len(done) == 1:
            _misused(data)
    assert {each: one.status for each, one in done.items() if one.status} == {}
    assert "secret github: waypost grants set expenses open_issue --secret github" in done["deploy expenses.py"].out
    assert "not listed in credentials.toml: github" in done["deploy expenses.py"].out, "before the first mail fails"
    assert "not listed in credentials.toml: github" in done["grants set expenses open_issue --secret github"].err
    assert "boss@example.com (as declared)" in done["grants show expenses"].out
    (step,) = json.loads(done["grants show expenses open_issue --json"].out)["steps"]
    assert (step["secrets"], step["asks"], step["lacks"]) == (["github"], ["github"], [])
    assert (place / "out" / "open_issue.git").is_dir()
    assert "nothing more is asked for" in verb("grants", "set", "expenses", "--asked", data=data).out
    likeness = verb("grants", "set", "expenses", "--mail", "b\N{CYRILLIC SMALL LETTER O}ss@example.com", data=data)
    assert "(spelt b\\u043ess@example.com)" in likeness.out, "it looks like another address"
    taken = verb("grants", "revoke", "expenses", "open_issue", "--secret", "github", data=data)
    assert "until step open_issue is granted the secret github" in taken.err, "whoever takes it back sees what follows"
    again = verb("grants", "set", "expenses", "--asked", data=data)
    assert "not listed in credentials.toml: github" in again.err, "it was said only of a secret that was named"
    assert (verb("verify", data=data).status, verb("fsck", data=data).status) == (0, 0)


def _misused(data: Path) -> None:
    """What isn't granted yet is a status of its own; what is misspelt is granted to nobody."""
    shown = verb("grants", "show", "expenses", data=data)
    assert (shown.status, "github (not granted)" in shown.out) == (2, True)
    for arguments, status, words in MISUSED:
        misused = verb("grants", *arguments, data=data)
        assert (misused.status, words in misused.err) == (status, True), misused
    assert verb("grants", "show", "expenses", data=data) == shown


@pytest.mark.torture
def test_grants_hold_for_a_real_host_from_the_first_mail_to_a_revoke_in_between(tmp_path: Path) -> None:
    """A run that lacks something fails durably; one that runs loses what is taken back, at once, and is told so."""
    file, data = tmp_path / "expenses.py", tmp_path / "data"
    file.write_text(WORKFLOW)
    verb("deploy", str(file), data=data)
    trusted(tmp_path, data)
    with HostProcess(file, data=data) as host:
        host.wait_for("not granted: secret github to step size")
        why = host.verb("why", "expenses")
        assert "waypost grants set expenses size --secret github" in why.stdout
        host.send("expenses@example.com", mail("a"))
        host.wait_for("failed: GrantMissing")
        assert host.verb("grants", "set", "expenses", "size", "--secret", "github").returncode == 0
        host.send("expenses@example.com", mail("b"))
        host.wait_for("step size is done: 10")
        host.wait_for("waits for the next mail")
        assert host.verb("grants", "revoke", "expenses", "--mail", "boss@example.com").returncode == 0
        host.send("expenses@example.com", mail("c", "In-Reply-To: <b@x>\r\n"))
        host.wait_for("no grant to mail boss@example.com; `waypost grants set expenses --mail boss@example.com`")
        host.wait_for("completed")
        host.kill()
    with HostProcess(file, data=data) as host:
        assert host.verb("grants", "show", "expenses").returncode == 0
        host.send("expenses@example.com", mail("d"))
        host.wait_for("no grant to mail boss@example.com")
    verb("grants", "revoke", "expenses", "size", "--secret", "github", data=data)
    assert verb("grants", "show", "expenses", data=data).status == 2
    granted = verb("deploy", str(file), "--grant", data=data)
    assert (granted.status, "fails" in granted.out) == (0, False)
    assert "expenses: step size is granted secret github" in granted.out
    assert verb("grants", "show", "expenses", data=data).status == 0
    assert (verb("verify", data=data).status, verb("fsck", data=data).status) == (0, 0)


@pytest.mark.torture
def test_a_step_that_runs_loses_what_is_revoked_and_its_run_lives_on_also_after_a_kill(tmp_path: Path) -> None:
    """The child is told at once; and the next child, which is told from the start, doesn't fail what has begun."""
    file, data, has = tmp_path / "expenses.py", tmp_path / "data", tmp_path / "has"
    file.write_text(HOLDING.format(has=str(has)))
    verb("deploy", str(file), "--grant", data=data)
    trusted(tmp_path, data)
    options = ("--isolation", "none")
    with HostProcess(file, data=data, options=options) as host:
        host.send("expenses@example.com", mail("a"))
        eventually(has.exists, "the step has read it")
        host.kill()
    has.unlink()
    with HostProcess(file, data=data, options=options) as host:
        eventually(has.exists, "the step has read it")
        assert host.verb("grants", "revoke", "expenses", "holds", "--secret", "github").returncode == 0
        host.wait_for('is done: "10, then refused"')
        host.wait_for("completed")
    assert (verb("verify", data=data).status, verb("fsck", data=data).status) == (0, 0)
