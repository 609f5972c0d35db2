"""Secrets planted by each way, used as they should be and as people do, on a real host that is killed in between."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from waypost.testing.host_process import HostProcess
from waypost.testing.leaks import found_in, of_processes, on_disk
from waypost.testing.mortal import workers_of
from waypost.testing.verbs import verb

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

FILE, ENV, COMMAND, ROTATED = "planted-file-2f8a", 'planted "env" 91cc', "planted-command-77d0", "planted-rotated-c31e"
PLANTED = (FILE, ENV, COMMAND, ROTATED)
MAIL = "From: ann@example.com\r\nMessage-ID: <{0}@x>\r\nSubject: s\r\n\r\n{1}\r\n"
GRANTS = {
    "uses": "by-file by-env by-command",
    "asks_models": "by-command",
    "careless": "by-file by-env",
    "gives_away": "by-env",
    "hides": "by-file",
}
STEPS = (
    "uses",
    "asks_models",
    "environment",
    "careless",
    "gives_away",
    "not_granted",
    "asks",
    "mails",
    "addresses",
    "encloses",
    "quits",
    "ends",
    "ends-large",
)
ENDS = dict.fromkeys(("asks", "mails", "addresses", "encloses", "ends", "ends-large"), "failed") | {
    "quits": "cancelled"
}


def listed(folder: Path) -> str:
    """``credentials.toml``: none of the values is in it, the command's is in pieces."""
    command = COMMAND.replace("-", "'-'")
    return f"""
[credentials.by-file]
file = "{folder}/token"
[credentials.by-env]
env = "PLANTED_TOKEN"
[credentials.by-command]
command = ["sh", "-c", "echo {command}"]
[[sources]]
id = "main"
provider = "p"
model = "m"
credential = "by-command"
"""


@pytest.mark.usefixtures("unmeasured")
def test_no_planted_secret_is_left_anywhere(tmp_path: Path, flows: Path) -> None:
    """Repositories object by object, journals, logs of host and child, their processes, answers of verbs and API.

    The host's own environment has the variable: whoever started it has put it there.
    """
    data, texts = tmp_path / "data", dict[str, bytes]()
    data.mkdir(mode=0o700)
    data.joinpath("credentials.toml").write_text(listed(tmp_path))
    tmp_path.joinpath("token").write_text(FILE + "\n")
    tmp_path.joinpath("token").chmod(0o600)
    host = HostProcess(flows / "trusted.py", data=data, env={"PLANTED_TOKEN": ENV}).start()
    for step, handles in GRANTS.items():
        secrets = [word for handle in handles.split() for word in ("--secret", handle)]
        assert verb("grants", "set", "trusted", step, *secrets, data=data).status == 0
    sent = 0
    for kill in ("nobody", "child", "host"):
        for step in STEPS if kill == "nobody" else ("uses", "careless", "ends"):
            sent += 1
            taken = verb("send", "trusted@example.com", data=data, stdin=MAIL.format(sent, step).encode()).out
            (run,) = re.findall(r"run_[0-9]+_[0-9a-f]{16}", taken)
            host.wait_for(ENDS.get(step, "completed"))
            for line in (f"show {run}", f"show {run} --json", f"log {run}", f"why {run}"):
                texts[f"{kill}: {line}"] = verb(*line.split(), data=data).out.encode()
        for line in ("list", "list --json", "check", "reload --json"):
            done = verb("credentials", *line.split(), data=data)
            assert done.status == 0, done.err
            texts[f"{kill}: {line}"] = (done.out + done.err).encode()
        texts |= {f"{kill}: {where}": text for where, text in _of_children(host).items()}
        texts |= {f"{kill}: {where}": text for where, text in on_disk(data).items()}
        if kill == "nobody":
            tmp_path.joinpath("token").write_text(ROTATED)
            assert "trusted: delivered" in verb("credentials", "reload", data=data).out
            for pid in workers_of(host.pid):
                os.kill(pid, signal.SIGKILL)
            host.wait_for("is running")
        elif kill == "child":
            host.kill()
            texts["killed: said"] = ("\n".join(host.said) + host.complaints).encode()
            host = HostProcess(flows / "trusted.py", data=data, env={"PLANTED_TOKEN": ENV}).start()
    host.stop()
    texts |= on_disk(data) | {"said": ("\n".join(host.said) + host.complaints).encode()}
    texts["verify"] = verb("verify", "--json", data=data).out.encode()
    assert found_in(texts, PLANTED) == []
    log = texts["logs/trusted.log"]
    assert b"token: [secret by-file]" in log
    results = [json.loads(line) for name, text in texts.items() if ": log " in name for line in text.splitlines()]
    assert sum(str([len(FILE), len(ENV), len(COMMAND)]) in json.dumps(event) for event in results) >= 1
    assert sum(str([len(ROTATED), len(ENV), len(COMMAND)]) in json.dumps(event) for event in results) >= 1


def _of_children(host: HostProcess) -> dict[str, bytes]:
    """What the host's children show, and its own command line; not its environment."""
    return {
        where: text
        for where, text in of_processes(host.pid).items()
        if where != f"/proc/{host.pid}/environ" or os.environ.get("PLANTED_TOKEN")
    }
