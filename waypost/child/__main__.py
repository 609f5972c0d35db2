"""The program that a host spawns: ``python -P -X utf8 -m waypost.child --parent PID --root DIR --module NAME …``.

Or, without keys and without a host, ``--describe FILE``: prints what the file declares, as JSON.

The order of the start is the promise: tied to the host first, keys read and their descriptor closed next, and only
then is any user code imported. A file that doesn't load is said in ``ready``; the child stays.
"""

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from waypost.model.limits import DEFAULT

if TYPE_CHECKING:
    from waypost.authoring.workflow import Workflow
    from waypost.child.wire import Wire

EX_SOFTWARE = 70
EX_IOERR = 74
EX_CONFIG = 78

_TEXT = 200_000  # of a load error: a frame has room for it


def main(arguments: Sequence[str]) -> NoReturn:
    """Run as the arguments say; ends the process by itself, as step bodies in threads can't be waited for."""
    options = _parser().parse_args(arguments)
    if options.describe is not None:
        from waypost.child.describe import describe

        if options.parent is not None:
            from ipc.parent import settle

            settle(options.parent)
        _leave(describe(Path(options.describe)))
    from ipc.errors import IpcError

    try:
        code = _serve(options)
    except IpcError as failure:
        print(f"waypost.child: {failure}", file=sys.stderr)  # noqa: T201 - its log is all it has
        code = EX_CONFIG
    except BrokenPipeError:
        code = EX_IOERR  # the host is gone
    except BaseException:  # noqa: BLE001 - whatever it is, threads of step bodies must not keep the process
        traceback.print_exc()
        code = EX_SOFTWARE
    _leave(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m waypost.child", description="Started by a Waypost host.")
    parser.add_argument("--describe", metavar="FILE", help="print what the file declares, as JSON")
    parser.add_argument("--parent", type=int, metavar="PID", help="the host's process")
    parser.add_argument("--root", type=Path, help="the folder of the import path that holds the code")
    parser.add_argument("--module", help="the workflow file's dotted name in there")
    parser.add_argument("--sha256", help="the file's SHA-256, in hex")
    parser.add_argument("--retry-first", type=float, default=DEFAULT.retry_first, metavar="SECONDS")
    parser.add_argument("--retry-cap", type=float, default=DEFAULT.retry_cap, metavar="SECONDS")
    return parser


def _serve(options: argparse.Namespace) -> int:
    from ipc import control, events, keys, parent
    from ipc.environment import read_anchors
    from ipc.parse import to_child
    from ipc.prctl import PR_SET_DUMPABLE, prctl
    from ipc.sealed import Direction
    from ipc.spawn import CONTROL_FD, EVENTS_FD

    if options.parent is None or options.root is None or options.module is None:
        print("waypost.child: --parent, --root and --module are needed", file=sys.stderr)  # noqa: T201 - the same
        return EX_CONFIG
    parent.settle(options.parent)
    prctl(PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGTERM, _terminated)
    for fd in (CONTROL_FD, EVENTS_FD):
        os.set_inheritable(fd, False)  # noqa: FBT003 - positional only; a step's own processes have no business there
    anchors = read_anchors(os.environ)
    event_key = keys.read_secrets()

    from waypost.ed25519 import PrivateKey

    own_key = PrivateKey.generate()

    from waypost.authoring.scope import become_child
    from waypost.child.bodies import Bodies
    from waypost.child.mailbox import Mailbox
    from waypost.child.runtime import Runtime
    from waypost.child.wire import Wire, listen

    become_child()
    mailbox: Mailbox = SimpleQueue()
    wire = Wire(
        CONTROL_FD,
        EVENTS_FD,
        control_sender=control.Sender(own_key, anchors.channel_id, Direction.UP),
        events_sender=events.Sender(event_key, anchors.channel_id),
    )
    receiver = control.Receiver(anchors.host_key, anchors.channel_id, Direction.DOWN, parse=to_child)
    limits = replace(DEFAULT, retry_first=options.retry_first, retry_cap=options.retry_cap)
    workflow = _introduced(options, wire, own_key.public)
    runtime = Runtime(workflow, wire=wire, bodies=Bodies(mailbox, limits), mailbox=mailbox, limits=limits)
    threading.Thread(target=listen, args=(CONTROL_FD, receiver, mailbox), name="waypost-frames", daemon=True).start()
    _warm_up()
    leaving = runtime.serve()
    if leaving.reason:
        print(f"waypost.child: {leaving.reason}", file=sys.stderr)  # noqa: T201 - the same
    return leaving.code


def _introduced(options: argparse.Namespace, wire: "Wire", key: bytes) -> "Workflow | None":
    """Load the user's file and say ``ready``, with what became of it."""
    from ipc.messages import Ready
    from waypost.child.errors import Changed, NotLoadable
    from waypost.child.load import Place, load

    try:
        loaded = load(Place(options.root, options.module), sha256=options.sha256)
    except Changed as changed:
        # Not a line of it was run; the host, which knows what it deployed, gives no run to other code.
        wire.send(Ready(key=key, pid=os.getpid(), code=changed.found))
        return None
    except NotLoadable as failure:
        text = f"{failure}\n{failure.hint}" if failure.hint else f"{failure}"
        wire.send(Ready(key=key, pid=os.getpid(), error=text[:_TEXT].encode("utf-8", "backslashreplace").decode()))
        return None
    wire.send(Ready(key=key, pid=os.getpid(), code=loaded.sha256))
    return loaded.workflow


def _warm_up() -> None:
    """Load what the first run needs, now that the host has its ``ready``: its mail is the next thing to come."""
    import waypost.child.loop
    import waypost.model.mail  # noqa: F401 - loading is the purpose


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    """Leave at once: all that counts is in the log."""
    _leave(0)


def _leave(code: int) -> NoReturn:
    """End without waiting for threads, but not without the last words of user code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, RuntimeError):  # closed, full, or in use by the code that was interrupted
            continue
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
