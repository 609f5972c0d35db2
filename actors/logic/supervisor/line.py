"""A deployment that mail has woken takes up none before the host tells it to, and tells the host when it has.

Level-triggered: where it stands is in the books, and dispatch hears of it with each child. What keeps mail from being
taken up at all (a drain, code that doesn't load) is said by the state, and the host waits for nobody of whom it is
(``waypost.host.root.line``). Pure.
"""

from dataclasses import replace

from actors.draining import Line, TakeUpMail
from actors.logic.supervisor import states as st
from actors.logic.supervisor.effects import Effect, TellDispatch, Up
from waypost.acting import Next


def told(state: st.State) -> Next[st.State]:
    """``GoAhead``: it is its turn."""
    if state.books.line == "waits":
        tell = (TellDispatch(TakeUpMail(state.books.generation)),) if isinstance(state, st.Running) else ()
        return Next(_at(state, "called"), tell)
    return Next(_at(state, "called") if isinstance(state, st.Idle) else state)


def took_up(state: st.State, generation: int) -> Next[st.State]:
    """Dispatch has: the line is behind it."""
    return Next(_at(state, "") if generation == state.books.generation else state)


def lined_up(following: Next[st.State]) -> Next[st.State]:
    """What follows; and where a child comes up, what it is to take up yet."""
    line = following.state.books.line
    if not line or not any(isinstance(each, Up) for each in following.effects):
        return following
    effects: list[Effect] = []
    for each in following.effects:
        if not isinstance(each, Up):
            effects.append(each)
            continue
        effects.append(replace(each, takes="nothing") if each.takes == "all" else each)
        if line == "called":
            effects.append(TellDispatch(TakeUpMail(each.generation)))
    return Next(following.state, tuple(effects))


def _at(state: st.State, line: Line) -> st.State:
    return replace(state, books=replace(state.books, line=line))
