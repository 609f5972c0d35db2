"""How the root has those that mail has woken take it up in order: what ``line`` decides, of its members. Pure."""

from dataclasses import replace

from actors.draining import GoAhead
from actors.draining import Line as Place
from actors.logic.supervisor.words import BARRED, BROKEN, FULL
from actors.messages import Start, Woken
from waypost.acting import Next, Tell, WakeAt
from waypost.host.root import line
from waypost.host.root import states as st
from waypost.host.root.line import Line, Patience, Stand
from waypost.model.ids import Deployment
from waypost.model.times import Now

UNTOLD = frozenset({"idle", "waking"})
"""States that a deployment is shown in before its supervisor has said anything."""
_COMING = UNTOLD | {"starting"}
_HINDERED = frozenset({BROKEN, FULL, BARRED})
"""Codes of one that runs, and begins no run for a mail."""


def stand(state: st.Opening | st.Running, name: Deployment) -> Stand:
    """How one that stands in the line is."""
    member = state.members.get(name)
    match member:
        case st.Awaiting() | st.Raising():
            return "coming"
        case st.Parting() if member.wishes:
            return "coming"
        case st.Raised(description=shown) if shown.state in _COMING:
            return "callable"
        case st.Raised(description=shown) if shown.state == "running" and shown.line and shown.code not in _HINDERED:
            return "ready"
        case _:
            return "over"


def joined(state: st.Opening | st.Running, name: Deployment) -> st.Opening | st.Running:
    """Mail has come for one that sleeps, or is on the way in or out."""
    return _with(state, line.joined(state.dormancy.line, name))


def moved(state: st.Running, now: Now) -> tuple[st.Running, tuple[Tell | WakeAt, ...]]:
    """Let on whoever may; where somebody is ready and waits for others, look again in a while.

    From then on, not before: of dozens that come up at once on a busy machine any may be the first, seconds late.
    """
    if not state.dormancy.line.row:
        return state, ()
    after, calls = line.moved(state.dormancy.line, lambda name: stand(state, name))
    dormancy, told = replace(state.dormancy, line=after), _called(state, calls)
    if after.patience is not None or not _waits(state, after):
        return replace(state, dormancy=dormancy), told
    token = dormancy.last + 1
    after = replace(after, patience=Patience(token, after.passed))
    wake = WakeAt(Woken(token), mono=now.mono + line.PATIENCE)
    return replace(state, dormancy=replace(dormancy, line=after, last=token)), (*told, wake)


def impatient(state: st.Opening | st.Running, token: int) -> Next[st.State]:
    """A wake-up: perhaps that of those that wait for one who is slow."""
    after, calls = line.impatient(state.dormancy.line, token, lambda name: stand(state, name))
    return Next(_with(state, after), _called(state, calls))


def start(state: st.Opening | st.Running, member: st.Raised) -> Tell:
    """Have a supervisor begin; one that mail has woken takes up none before its turn.

    Of one that was up, or asleep, a full disk is no reason to be down for good: that ends by itself.
    """
    name, row, called = member.spec.name, state.dormancy.line.row, state.dormancy.line.called
    at: Place = "called" if name == called else "waits" if name in row else ""  # nobody is called twice
    again = member.incarnation > 1 or member.description.state == "waking"
    return Tell(member.supervisor, Start(at, again))


def _called(state: st.Opening | st.Running, calls: tuple[Deployment, ...]) -> tuple[Tell, ...]:
    members = (state.members.get(name) for name in calls)
    return tuple(Tell(each.supervisor, GoAhead()) for each in members if isinstance(each, st.Raised) and _kept(each))


def _waits(state: st.Running, after: Line) -> bool:
    """Whether anybody is ready, and it isn't its turn. Whoever has a process is among those awake."""
    return any(name != after.called and stand(state, name) == "ready" for name in state.dormancy.slots.awake)


def _kept(member: st.Raised) -> bool:
    return member.description.line == "waits" or member.description.state in _COMING


def _with(state: st.Opening | st.Running, after: Line) -> st.Opening | st.Running:
    return replace(state, dormancy=replace(state.dormancy, line=after))
