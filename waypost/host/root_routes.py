"""What the mail bus is told of where mail goes: all routes at once. Pure."""

from typing import assert_never

from waypost.acting import Tell
from waypost.host.messages import Route, Routes
from waypost.host.root_states import Awaiting, Dormant, Installing, Leaving, Lost, Parting, Raised, Raising, Running


def routes(state: Running) -> Tell:
    """All of them; what is for one that has no supervisor now is kept by the bus, which has it woken."""
    found: dict[str, Route] = {}
    for name, member in state.members.items():
        match member:
            case Raised() | Leaving():
                found[member.spec.address] = Route(name, member.supervisor)
            case Raising() | Installing():
                found[member.spec.address] = Route(name, member.last)
            case Parting() | Dormant() | Awaiting():
                found[member.spec.address] = Route(name, None)
            case Lost():
                pass
            case _:
                assert_never(member)
    return Tell(state.bus, Routes(found))
