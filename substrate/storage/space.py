"""What a full disk still takes: new mail is withheld first and no run starts; at the end only what ends or pauses one.

Pure: from the bytes that may be written before the disk must be asked for more (storage §2, disk full).
"""

from typing import Any

from substrate.messages import Append, Cancel, Enqueue, LatchDeployment, Pause, TakeUp, Tick
from waypost.model import events as ev
from waypost.model.limits import Limits

_ENDING = (*ev.TERMINAL, ev.ChildCancelRequested)
"""What a run writes that ends it, or a child of it."""


def enough(limits: Limits) -> int:
    """Bytes below which space is scarce."""
    return limits.seal_bytes // 2


def withholds(operation: Any, room: int, limits: Limits) -> str | None:
    """Why an operation is withheld where space is scarce; None where it isn't.

    ``operation``: an Operation, or what its runs ask of it; Any, as the writer decides by type alone.
    """
    starts = isinstance(operation, Enqueue | Tick) or (isinstance(operation, TakeUp) and operation.start is not None)
    if starts or (room < limits.reserve and not _ends(operation)):
        return f"the disk is full: {room} bytes are left for this deployment"
    return None


def kept(operation: Any, limits: Limits) -> int:
    """Bytes that must be left when an operation is written: it may not take what is for the ends of others."""
    return 0 if _ends(operation) else limits.reserve


def _ends(operation: Any) -> bool:
    return isinstance(operation, Pause | Cancel | LatchDeployment) or (
        isinstance(operation, Append) and any(isinstance(event, _ENDING) for event in operation.events)
    )
