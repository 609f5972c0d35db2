"""Why a deployment is as it is that has no supervisor to say so: it is about to get one, or will have none. Pure."""

from dataclasses import replace

from actors.describing import Description
from actors.logic.supervisor.down import down
from waypost.model.why import Sentence

HOST_FAULT = "host-fault"
"""Why it is down where its supervisor failed too often, for programs."""


def sentence(name: str, state: str, reason: str) -> Sentence:
    """The sentence of a state that the root itself has put a deployment into."""
    about = f" ({reason})" if reason else ""
    match state:
        case "down":
            return down(name, HOST_FAULT, reason.removeprefix(f"{HOST_FAULT}: "), "", mailed=False)
        case "waking":
            what = "a place among the deployments that are awake; one that has nothing to do makes way"
            return Sentence(waits_for=what, then="its repository is opened and a process is started")
        case "idle":
            return Sentence(waits_for="its turn, as the host is starting", then="its repository is opened")
        case _:
            return Sentence(waits_for=f"its turn to be started{about}", then="its repository is opened")


def leaving(shown: Description) -> Description:
    """How a deployment is said that ends in order to go on with other code."""
    return replace(shown, why=replace(shown.why, then="other code takes its place, and it starts with that"))
