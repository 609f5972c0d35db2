"""Who calls the API, as the kernel says: the host's own user is its operator, root beside it an administrator."""

import asyncio
import os
from typing import Any

import pytest

from ipc.process import Peer
from waypost.host.api.server import _introduced


@pytest.mark.parametrize(("host", "peer", "admin"), [(1000, 0, True), (1000, 1000, False), (0, 0, False)])
def test_root_beside_the_hosts_user_is_an_administrator(
    host: int,
    peer: int,
    admin: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What they ask for is recorded as theirs; nobody can say it of themselves."""
    monkeypatch.setattr(os, "geteuid", lambda: host)
    seen: list[dict[str, Any]] = []

    async def app(scope: dict[str, Any], _receive: object, _send: object) -> None:
        seen.append(scope)

    call: Any = _introduced(app, Peer(1, peer, peer))
    asyncio.run(call({"waypost.admin": "says who?"}, None, None))
    assert seen[0]["waypost.admin"] is admin
