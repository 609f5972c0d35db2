"""A child after its ``ready``: both channels, the runtime, and the thread that listens.

Loaded only then, because the host has a mail to find while this one gets its hands free.
"""

import gc
import sys
import threading
from queue import SimpleQueue

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
from waypost.child.vault import Vault
from waypost.child.wire import Wire, listen
from waypost.model.limits import DEFAULT, Limits

EX_OSERR = 71
"""Exit code (sysexits.h): the system can't give what is needed, a thread for instance."""


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
    listening = threading.Thread(target=listen, args=(ways[0], receiver, mailbox), name="waypost-frames", daemon=True)
    try:
        listening.start()
    except RuntimeError as failure:  # without it nothing can be done here, now or later
        print(f"waypost.child: {failure}: allow it more processes (--processes)", file=sys.stderr)  # noqa: T201 - as below
        return EX_OSERR
    _warm_up()
    leaving = runtime.serve()
    if leaving.reason:
        print(f"waypost.child: {leaving.reason}", file=sys.stderr)  # noqa: T201 - its log is all it has
    return leaving.code


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
