"""A child after its ``ready``: both channels, the runtime, and the thread that listens.

Loaded only then, because the host has a mail to find while this one gets its hands free.
"""

import gc
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

import msgspec

from ipc import control, events
from ipc.environment import Anchors
from ipc.parse import to_child
from ipc.sealed import Direction
from ipc.secret import Secret
from waypost.authoring.workflow import Workflow
from waypost.child.arguments import Options
from waypost.child.bodies import Bodies
from waypost.child.mailbox import Mailbox
from waypost.child.runtime import Runtime
from waypost.child.starved import AGAIN
from waypost.child.vault import Vault
from waypost.child.voice import or_end
from waypost.child.wire import Wire, listen
from waypost.model.limits import DEFAULT, Limits


def serve(
    workflow: Workflow | None,
    options: Options,
    anchors: Anchors,
    key: Secret,
    sender: control.Sender,
    ways: tuple[int, int],
) -> int:
    """Run what the host gives this child, until there is a reason to leave; gives the exit code.

    ``sender`` has said ``ready``; ``key`` is the event channel's; ``ways`` are the descriptors of control and events.
    Raises OSError, IpcError.
    """
    mailbox: Mailbox = SimpleQueue()
    wire = Wire(*ways, control_sender=sender, events_sender=events.Sender(key, anchors.channel_id))
    receiver = control.Receiver(anchors.host_key, anchors.channel_id, Direction.DOWN, parse=to_child)
    limits = _limits(options)
    vault = Vault(anchors.deployment)
    bodies = Bodies(mailbox, limits, vault)
    runtime = Runtime(workflow, wire=wire, bodies=bodies, mailbox=mailbox, limits=limits, vault=vault)
    _in_a_thread(lambda: listen(ways[0], receiver, mailbox), mailbox)
    _warm_up()
    leaving = runtime.serve()
    if leaving.reason:
        print(f"waypost.child: {leaving.reason}", file=sys.stderr)  # noqa: T201 - its log is all it has
    return leaving.code


def _in_a_thread(listening: Callable[[], None], mailbox: Mailbox) -> None:
    """Have it done in a thread; where none is to be had, wait for one: that is no fault of the code's.

    Whoever ends this process meanwhile does it by a signal.
    """
    if _begun(listening):
        return
    what = "no thread is to be had to listen to the host: it goes on when there is one"
    print(f"waypost.child: {what}", file=sys.stderr)  # noqa: T201 - its log is all it has
    while not _begun(listening):
        with suppress(Empty):  # nobody puts anything there before
            mailbox.get(timeout=AGAIN)


def _begun(listening: Callable[[], None]) -> bool:
    try:
        threading.Thread(target=or_end, args=(listening,), name="waypost-frames", daemon=True).start()
    except RuntimeError:
        return False
    return True


def _limits(options: Options) -> Limits:
    first, cap = options.retry_first, options.retry_cap
    return msgspec.structs.replace(
        DEFAULT,
        retry_first=DEFAULT.retry_first if first is None else first,
        retry_cap=DEFAULT.retry_cap if cap is None else cap,
    )


def _warm_up() -> None:
    """Load what the first run needs: its mail is the next thing to come. As quickly as what came before."""
    collecting = gc.isenabled()  # the user's file may have turned it off
    gc.disable()
    import waypost.child.loop
    import waypost.model.mail_parse  # noqa: F401 - loading is the purpose

    if collecting:
        gc.enable()
