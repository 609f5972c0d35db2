"""Why a deployment is down that doesn't come up by itself, and what somebody has to do, by its reason's code. Pure.

The codes are those of ``Description.code``; one that isn't known here leads to a start of the host, too.
"""

from substrate.messages import Drain
from waypost.model.why import Sentence, command

_ANEW = "it is tried again by the next start of the host, when that was ended (Ctrl-C)"
KNOWN = {
    "damaged": ("somebody to restore its repository, which is damaged", "fsck", "run"),
    "rolled-back": (
        "somebody to put its newer repository back, or to go on without what is missing",
        "accept-rollback",
        "run",
    ),
    "storage-failed": ("somebody to see to its disk", "run", "fsck"),
    "newer-format": ("a Waypost that can read its repository", "run"),
    "unreadable": ("somebody to let its repository be read", "run", "fsck"),
    "code-changed": ("its folder of code to be made anew", "run"),
    "host-fault": ("somebody to look into the host's log, as parts of it failed again and again", "run"),
}
"""By code: whom or what it waits for, and the verbs that help; ``run`` is the host's, the others are about it alone."""


def down(name: str, code: str, message: str, since: str, *, mailed: bool) -> Sentence:
    """``mailed``: whether mail is accepted meanwhile; else it is withheld, and whoever sent it tries again."""
    what, *verbs = KNOWN.get(code, ("somebody to see to what keeps it down", "run"))
    line, other, *_ = (*(command(verb, *(() if verb == "run" else (name,))) for verb in verbs), "")
    mail = "mail is accepted meanwhile" if mailed else "mail is withheld meanwhile, and its senders try again"
    return Sentence(
        waits_for=f"{what} ({message})",
        since=since,
        then=f"{_ANEW}; nothing is lost, and {mail}",
        command=line,
        alternative=other,
        needed=True,
    )


def recycle_failed(name: str, reason: str, since: str, drain: Drain | None) -> Sentence:
    """It was to have a fresh process, and that didn't come up. ``drain``: what it was at, which a resume ends."""
    what, resume = f"somebody to see to its fresh process ({reason})", command("resume", name)
    if drain is not None:
        off = f"`waypost resume {name}` tries it now, and calls the drain off"
        then = f"{_ANEW}, which goes on with the drain; {off}; until then nothing runs, and mail is withheld"
        return Sentence(waits_for=what, since=since, then=then, command=command("run"), alternative=resume, needed=True)
    then = f"another one is tried; until `waypost resume {name}` nothing runs, and mail is withheld"
    return Sentence(waits_for=what, since=since, then=then, command=resume, needed=True)
