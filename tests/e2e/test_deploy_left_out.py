"""A host leaves out what can't be run; a deploy beside it mends that, as `why` says, and the next host runs it."""

import json
from pathlib import Path

import pytest

from waypost.host.exits import Exit
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.patience import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

WORKFLOW = """
import os

from waypost import Mail, Workflow

if os.path.exists({flag!r}):
    raise RuntimeError("not on this machine")

flow = Workflow({name!r}, address={address!r})


@flow.run
async def run(mail: Mail) -> str:
    return "done"
"""


def test_a_deployment_that_its_host_left_out_is_mended_by_a_deploy_beside_it(tmp_path: Path) -> None:
    """The command that `why` names was refused, as the host didn't run it; now it is what helps."""
    data, flag = tmp_path / "data", tmp_path / "flag"
    file = tmp_path / "flow.py"

    def deployed(name: str, *, mended: bool = False, address: str = "") -> tuple[int, str]:
        sees = tmp_path / "never" if mended or name == "ant" else flag
        file.write_text(WORKFLOW.format(name=name, flag=str(sees), address=address or f"{name}@example.com"))
        done = waypost("deploy", str(file), data=data)
        return done.returncode, f"{done.stdout}{done.stderr}"

    assert deployed("ant")[0] == deployed("zoo")[0] == Exit.OK
    flag.touch()
    with HostProcess(data=data, options=("--isolation", "none")) as host:
        why = json.loads(host.verb("why", "zoo", "--json").stdout)
        assert why["command"] == "waypost deploy FILE"
        status, said = deployed("zoo", mended=True, address="else@example.com")
        assert (status != Exit.OK, "zoo@example.com" in said) == (True, True)
        status, said = deployed("zoo", mended=True)
        assert (status, "its host left it out: end that host" in said) == (Exit.OK, True)
        assert "deployed already" in deployed("zoo", mended=True)[1]
        status, said = deployed("bee", mended=True)
        assert (status, "stop it, deploy again, and start it" in said) == (Exit.REFUSED, True)
    with HostProcess(data=data, options=("--isolation", "none")) as again:
        asks = ("why", "zoo", "--json")
        eventually(lambda: json.loads(again.verb(*asks).stdout)["state"] == "running", "the next host runs it")
