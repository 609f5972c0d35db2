"""From an authentic payload to one of the messages that its lane may carry, strictly typed.

Each function raises msgspec.ValidationError, which a receiver reports as `BadMessage`.
"""

import msgspec

from ipc.messages import FromChild, FromChildEvents, FromHost


def from_child(payload: object) -> FromChild:
    """What a child may say on the control channel."""
    message: FromChild = msgspec.convert(payload, FromChild)
    return message


def from_child_events(payload: object) -> FromChildEvents:
    """What a child may say on the events channel."""
    return msgspec.convert(payload, FromChildEvents)


def to_child(payload: object) -> FromHost:
    """What a host may say to its child."""
    message: FromHost = msgspec.convert(payload, FromHost)
    return message
