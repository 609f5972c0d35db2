"""The command's side of the host's API: one request over the host's Unix socket, by the standard library alone.

Whatever comes back is a record of ``host/answers`` or an error with the host's code and words. A host that has
no place for one more says so before it has read anything: then it is asked again, for as long as an answer may take.
"""

import contextlib
import http.client
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from ipc.errors import IpcError
from ipc.process import peer_of
from ipc.stopped import stopped
from waypost.host.answers.records import Answer, Problem
from waypost.host.api.reach import reached
from waypost.host.errors import HostError, NoHost, NotNow, Unanswered

TIMEOUT = 60.0
"""Seconds; longer than the host waits for itself."""
VERIFY_TIMEOUT = 3600.0
"""Seconds: a whole history is checked at about a thousand commits a second."""
_AGAIN = 1.0
"""Seconds after which a host without a place is asked again; half of that to one and a half: not all come at once."""
_TRIES, _MOMENT = 60, 0.05
"""How often, and how many seconds apart, a host that breaks off is given the chance to be gone altogether."""
A = TypeVar("A", bound=Answer)


class Said(HostError):
    """The host refused; code, message and hint are the host's."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message, hint=problem.hint)
        self.code = problem.code  # type: ignore[misc] # of this one error: the class has no code of its own


class HostStopped(HostError):
    """Somebody has stopped the host's process: it would take the request, and answer nobody. Nothing was asked.

    Or it goes on with no answer that it has begun: only who follows learns of that.
    """

    code = "withheld"

    def __init__(self, pid: int) -> None:
        hint = f"let it go on: kill -CONT {pid}, or fg in its terminal; nothing is lost"
        super().__init__(f"the host here, process {pid}, has been stopped (SIGSTOP, or Ctrl-Z)", hint=hint)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("waypost", timeout=timeout)
        self._path = path
        self._peer: int | None = None

    def stopped(self) -> int | None:
        """The process that listens there, if it has been stopped."""
        return None if self._peer is None else next(iter(stopped(self._peer, boxed=False)), None)

    def connect(self) -> None:
        """Connect to the socket instead of a port."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with reached(self._path) as name:
            self.sock.connect(name)
        with contextlib.suppress(IpcError):  # of another pid namespace: nothing is known of it
            self._peer = peer_of(self.sock).pid


class Client:
    """A host that may be there; ``timeout`` in seconds.

    Every call may raise NoHost, HostStopped, NotNow, Said, Unanswered.
    """

    def __init__(self, socket_path: Path, timeout: float = TIMEOUT) -> None:
        self._path, self._timeout = socket_path, timeout

    def get(self, kind: type[A], *path: str, **query: int | str) -> A:
        """Ask; ``path`` is below /v1, its parts are quoted here.

        It changes nothing, so what is broken off is asked again: a host that is being killed still takes a question
        for a moment and doesn't answer it, and then there is none.
        """
        asked = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
        again = threading.Event()  # nobody sets it: a wait that Ctrl-C ends
        for left in reversed(range(_TRIES)):
            try:
                return self._answer(kind, "GET", _path(path) + (f"?{asked}" if asked else ""), None, "")
            except Unanswered as failure:
                if not (left and isinstance(failure.__cause__, ConnectionError | http.client.IncompleteRead)):
                    raise
                again.wait(_MOMENT)
        raise AssertionError("the last one returns or raises")

    def text(self, *path: str) -> str:
        """Ask for a page that is no record."""
        return b"".join(self.follow(*path)).decode()

    def post(
        self, kind: type[A], *path: str, body: bytes = b"", content_type: str = "application/json", **query: str
    ) -> A:
        """Have something done; when it returns, it is durable."""
        asked = f"?{urlencode(query)}" if query else ""
        return self._answer(kind, "POST", f"{_path(path)}{asked}", body, content_type)

    def follow(self, *path: str, **query: int | str) -> Iterator[bytes]:
        """Ask, and read lines as they come, until the host ends or breaks off. Raises as every call does."""
        asked = f"?{urlencode(query)}" if query else ""
        connection, response = self._let_in("GET", _path(path) + asked, None, "")
        try:
            if response.status != http.client.OK:
                raise Said(msgspec.json.decode(response.read(), type=Problem))
            while line := response.readline():
                yield line
        except (OSError, http.client.HTTPException, msgspec.MsgspecError) as failure:
            # It sends something every few seconds, as long as it runs.
            if isinstance(failure, TimeoutError) and (pid := connection.stopped()) is not None:
                raise HostStopped(pid) from failure
            raise Unanswered(f"the host broke off ({type(failure).__name__}: {failure})") from failure
        finally:
            connection.close()

    def _answer(self, kind: type[A], method: str, path: str, body: bytes | None, content_type: str) -> A:
        connection, response = self._let_in(method, path, body, content_type)
        try:
            raw = response.read()
        except (OSError, http.client.HTTPException) as failure:
            raise Unanswered(f"the host broke off ({type(failure).__name__}: {failure})") from failure
        finally:
            connection.close()
        try:
            if response.status in {http.client.OK, http.client.ACCEPTED}:
                return msgspec.json.decode(raw, type=kind)
            problem = msgspec.json.decode(raw, type=Problem)
        except msgspec.MsgspecError as bad:
            raise Unanswered(f"the host's words can't be read ({response.status}: {bad})") from bad
        raise Said(problem)

    def _let_in(
        self, method: str, path: str, body: bytes | None, content_type: str
    ) -> tuple["_Connection", http.client.HTTPResponse]:
        """The head of the answer of a host that had a place, and its connection; after a while also of one that hasn't.

        Raises NoHost, HostStopped, NotNow, Unanswered.
        """
        until, pause = time.monotonic() + self._timeout, threading.Event()
        while True:
            connection = _Connection(self._path, self._timeout)
            try:
                response = self._asked(connection, method, path, body, content_type)
            except BlockingIOError as failure:  # not even a place to wait for one: nobody has heard of us
                connection.close()
                if time.monotonic() > until:
                    raise NotNow("too many connect to the host at once") from failure
            except (OSError, http.client.HTTPException) as failure:
                connection.close()
                raise Unanswered(f"the host broke off ({type(failure).__name__}: {failure})") from failure
            except BaseException:
                connection.close()
                raise
            else:
                if response.headers.get("Retry-After") is None or time.monotonic() > until:
                    return connection, response
                connection.close()
            pause.wait(_AGAIN * (0.5 + random.random()))  # noqa: S311 - against all coming at once, and not against anybody

    def _asked(
        self, connection: "_Connection", method: str, path: str, body: bytes | None, content_type: str
    ) -> http.client.HTTPResponse:
        try:
            connection.connect()
        except (FileNotFoundError, ConnectionRefusedError):
            raise NoHost(str(self._path.parent)) from None
        except PermissionError:
            raise NoHost(str(self._path.parent), "the host here belongs to another user") from None
        if (pid := connection.stopped()) is not None:
            raise HostStopped(pid)
        headers = {"Content-Type": content_type} if body is not None else {}
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused unread: the answer says why
            connection.request(method, path, body, headers)
        return connection.getresponse()


def _path(parts: tuple[str, ...]) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)
