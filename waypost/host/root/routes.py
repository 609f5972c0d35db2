"""What the mail bus is told of where mail goes: all routes at once. Pure."""

from typing import assert_never

from waypost.acting import Tell
from waypost.host.messages import Route, Routes
from waypost.host.root import states as st


def routes(state: st.Running) -> Tell:
    """All of them; what is for one that has no supervisor now is kept by the bus, which has it woken."""
    found: dict[str, Route] = {}
    for name, member in state.members.items():
        match member:
            case st.Raised() | st.Leaving():
                found[member.spec.address] = Route(name, member.supervisor)
            case st.Raising() | st.Installing():
                found[member.spec.address] = Route(name, member.last)
            case st.Parting() | st.Dormant() | st.Awaiting():
                found[member.spec.address] = Route(name, None)
            case st.Lost():
                pass
            case _:
                assert_never(member)
    return Tell(state.bus, Routes(found))
