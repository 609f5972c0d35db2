"""What the host does about other processes: hides from them, and lets only its own user in, never its own children."""

import os
import socket
from collections.abc import Collection

from ipc.errors import IpcError, ProcessGone
from ipc.process import Peer, belongs_to, hide, peer_of
from ipc.strays import Mark, bears
from waypost.host.errors import HostError

__all__ = ["Peer", "PeerRefused", "admit", "hide"]


class PeerRefused(HostError):
    """The process at the other end of the socket may not talk to this host. ``pid`` and ``uid`` are the kernel's."""

    code = "peer-refused"

    def __init__(self, peer: Peer, why: str) -> None:
        super().__init__(f"process {peer.pid} of user {peer.uid} is refused: {why}", hint="")
        self.pid, self.uid = peer.pid, peer.uid


def admit(connection: socket.socket, children: Collection[int], kin: str = "") -> Peer:
    """Who is calling, if they may: the host's own user or root, and no descendant of ``children`` (``Wires.pids``).

    ``kin`` is how the marks of the host's children begin: whoever has left its session bears one.

    A workflow that calls the API would be an agent that approves its own requests. Raises PeerRefused.
    """
    try:
        peer = peer_of(connection)
    except IpcError as failure:
        raise PeerRefused(Peer(0, 0, 0), failure.message) from failure
    if peer.uid not in {0, os.geteuid()}:
        raise PeerRefused(peer, "it belongs to another user")
    try:
        inside = belongs_to(peer.pid, children) or (kin != "" and bears(peer.pid, Mark(kin)))
    except ProcessGone as gone:
        raise PeerRefused(peer, "it is gone already") from gone
    if inside:
        raise PeerRefused(peer, "it descends from a workflow's own process")
    return peer
