"""Code that can't be loaded for a reason outside of it, which somebody mends: the deploy that `why` names helps."""

import json
from pathlib import Path

import pytest

from waypost.cli.client import Client
from waypost.host.answers.records import DeploymentDraining
from waypost.host.exits import Exit
from waypost.testing.host_process import HostProcess
from waypost.testing.killing import kill_children
from waypost.testing.patience import eventually

FLOW = """
from pathlib import Path

if Path({missing!r}).exists():
    raise ImportError("no package of that name")

from waypost import Mail, Workflow, signal

flow = Workflow("flow", address="flow@example.com")


@flow.run
async def main(mail: Mail) -> str:
    return await signal("go", str)
"""
MAIL = b"From: ann@example.com\r\nMessage-ID: <m1@x>\r\nSubject: one\r\n\r\nhello\r\n"


@pytest.mark.torture
@pytest.mark.parametrize("drains", [False, True], ids=["in service", "in a drain to the end"])
def test_the_same_code_is_started_anew_where_it_could_not_be_loaded(tmp_path: Path, drains: bool) -> None:  # noqa: FBT001 - a case
    """The code is the same, so it was said to run already, and nothing but a kill, or the drain's end, helped."""
    missing, file = tmp_path / "missing", tmp_path / "flow.py"
    file.write_text(FLOW.format(missing=str(missing)))

    def why() -> tuple[str, str]:
        told = json.loads(host.verb("why", "flow", "--json").stdout)
        return told["state"], told["code"]

    with HostProcess(file, data=tmp_path / "data", options=("--isolation", "none")) as host:
        run = host.send("flow@example.com", MAIL)
        host.wait_for("waits")
        if drains:
            Client(host.data / "host.sock").post(
                DeploymentDraining, "deployments", "flow", "drain", body=b'{"end":true}'
            )
        missing.touch()
        kill_children(host.pid)
        eventually(lambda: why() == ("draining" if drains else "running", "broken-code"), "it can't be loaded")
        assert host.verb("deploy", str(file)).returncode == Exit.MALFORMED, "it can't be loaded still"
        missing.unlink()
        said = host.verb("deploy", str(file)).stdout
        assert "deployed already" in said
        assert "its host starts it anew, as it loads now" in said
        eventually(lambda: why() == ("draining" if drains else "running", ""), "it is loaded")
        assert host.verb("signal", run, "go", stdin=b'"yes"').returncode == Exit.OK
        host.wait_for('completed: "yes"')
        if drains:
            eventually(lambda: why()[0] == "held", "every run has ended")
        assert "its host runs it already" in host.verb("deploy", str(file)).stdout
