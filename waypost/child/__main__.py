"""The program that a host spawns: ``python -P -X utf8 -m waypost.child --parent PID --root DIR --module NAME …``.

Or, without keys and without a host, ``--describe FILE``: prints what the file declares, as JSON.

The order of the start is the promise: tied to the host first, keys read and their descriptor closed next, and only
then is any user code imported. A file that doesn't load is said in ``ready``; the child stays. What isn't needed to
say ``ready`` is loaded after it (`waypost.child.serving`): a test lists what must not be there before.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from waypost.child.arguments import USAGE, BadUsage, Options, read

if TYPE_CHECKING:
    from types import FrameType, ModuleType

    from ipc.control import Sender
    from waypost.authoring.workflow import Workflow

EX_USAGE = 2
EX_SOFTWARE = 70
EX_IOERR = 74
EX_PROTOCOL = 76
EX_CONFIG = 78

_TEXT = 200_000  # of a load error: a frame has room for it


def main(arguments: Sequence[str]) -> NoReturn:
    """Run as the arguments say; ends the process by itself, as step bodies in threads can't be waited for."""
    # Loading makes much and throws nothing away: looking for garbage meanwhile is a seventh of the time.
    gc.disable()
    try:
        options = read(arguments)
    except BadUsage as bad:
        _complain(f"{bad}\n{USAGE}")
        _leave(EX_USAGE)
    if options.help:
        print(USAGE)  # noqa: T201 - what was asked for
        _leave(0)
    from ipc.errors import ChannelTaken, IpcError

    try:
        looks = options.describe is not None or options.rehearse is not None
        code = _look(options) if looks else _serve(options)
    except ChannelTaken as taken:
        _complain(f"{taken}; {taken.hint}")
        code = EX_PROTOCOL
    except IpcError as failure:
        _complain(f"{failure}")
        code = EX_CONFIG
    except BrokenPipeError:
        _complain("nobody reads what this process says to its host: that is gone, or the workflow's code has shut it")
        code = EX_IOERR
    except BaseException:  # noqa: BLE001 - whatever it is, threads of step bodies must not keep the process
        import traceback

        traceback.print_exc()
        code = EX_SOFTWARE
    _leave(code)


def _look(options: Options) -> int:
    """At a file that nothing runs of."""
    if options.parent is not None:
        from ipc.parent import settle

        settle(options.parent, options.box)
    _load_msgspec()
    if options.rehearse is not None:
        from waypost.child.rehearsal import rehearse

        gc.enable()
        return rehearse(options.rehearse, options.tree)
    from waypost.child.describe import describe

    gc.enable()
    return describe(options.describe or "", options.tree)


def _serve(options: Options) -> int:
    if options.parent is None or options.root is None or options.module is None:
        _complain("--parent, --root and --module are needed")
        return EX_CONFIG
    from ipc import parent
    from ipc.prctl import PR_SET_DUMPABLE, prctl

    parent.settle(options.parent, options.box)
    prctl(PR_SET_DUMPABLE, 0)
    import signal

    signal.signal(signal.SIGTERM, _terminated)
    _load_msgspec()
    from ipc import control, keys
    from ipc.environment import read_anchors
    from ipc.sealed import Direction
    from waypost.authoring.scope import become_child
    from waypost.child.sending import Way
    from waypost.ed25519 import PrivateKey

    anchors = read_anchors(os.environ)
    event_key = keys.read_secrets()
    ways = Way.lifted(parent.CONTROL_FD), Way.lifted(parent.EVENTS_FD)
    own_key = PrivateKey.generate()
    become_child()
    sender = control.Sender(own_key, anchors.channel_id, Direction.UP)
    workflow = _introduced(options, sender, own_key.public, ways[0])

    from waypost.child.serving import serve

    return serve(workflow, options, anchors, event_key, sender, ways)


def _load_msgspec() -> None:
    """Load msgspec without `typing_extensions`: 9 ms, as that loads `inspect` and all below it.

    msgspec wants three names of it that `typing` has had since Python 3.11, and takes those of `typing` where the other
    isn't installed. An entry of None says so to an import statement (language reference, 5.3.1); whoever imports it
    later finds it.
    """
    name = "typing_extensions"
    if name in sys.modules:
        return
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # its stub has no None
    modules[name] = None
    try:
        import msgspec  # noqa: F401 - loading is the purpose
    finally:
        del modules[name]


def _introduced(options: Options, sender: "Sender", key: bytes, control: int) -> "Workflow | None":
    """Load the user's file and say ``ready``, with what became of it."""
    from ipc.ready import Ready
    from waypost.child.errors import Changed, NotLoadable
    from waypost.child.load import Place, load
    from waypost.child.sending import send

    gc.freeze()  # all of it is here to stay
    gc.enable()
    workflow = None
    try:
        loaded = load(
            Place(options.root or "", options.module or ""),
            tree=options.tree,
            sha256=options.sha256,
            compiled=options.compiled,
        )
    except Changed as changed:
        # Not a line of it was run; the host, which knows what it deployed, gives no run to other code.
        ready = Ready(key=key, pid=os.getpid(), code=changed.found)
    except NotLoadable as failure:
        text = f"{failure}\n{failure.hint}" if failure.hint else f"{failure}"
        ready = Ready(key=key, pid=os.getpid(), error=text[:_TEXT].encode("utf-8", "backslashreplace").decode())
    else:
        workflow, ready = loaded.workflow, Ready(key=key, pid=os.getpid(), code=loaded.sha256)
    send(control, sender, ready)
    return workflow


def _complain(text: str) -> None:
    """To its log, which is all that it has."""
    print(f"waypost.child: {text}", file=sys.stderr)  # noqa: T201 - see above


def _terminated(_number: int, _frame: "FrameType | None") -> NoReturn:
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
