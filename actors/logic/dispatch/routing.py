"""Which open wait of its run a mail is for (storage §5, decisions 9 and 10): pure, over the run's ledger and the gist.

Belonging to a run gives no rights: who may answer an approval is part of the wait and is checked here, and a mail that
no wait accepts is left where it is. The host decides, from what it read at the door; no child takes part.
"""

from dataclasses import dataclass

from waypost.model.events import Decision
from waypost.model.ids import CallId
from waypost.model.mail import Gist, sender_matches, thread_candidates
from waypost.model.run import Ledger


@dataclass(frozen=True, slots=True)
class Accepted:
    """The wait that takes the mail; ``decision`` when it is an approval."""

    call: CallId
    decision: Decision | None = None


def accepting_wait(ledger: Ledger, gist: Gist) -> Accepted | None:
    """The wait that takes this mail now: the approval that it answers, else the oldest open wait for input.

    None: it stays queued, and holds up nothing behind it.
    """
    decided = _approval(ledger, gist)
    if decided is not None:
        return decided
    inputs = (call for call, wait in ledger.waits.items() if wait.park == "input")
    call = next(inputs, None)
    return None if call is None else Accepted(call)


def no_answer_to(ledger: Ledger, gist: Gist) -> CallId | None:
    """The open approval that this mail speaks to without saying yes or no, written by somebody who may answer it.

    Not of an automatic mail: whoever is on holiday need not be told that this is no answer.
    """
    if gist.answer is not None or gist.automatic or accepting_wait(ledger, gist) is not None:
        return None
    asked = _asked_by(ledger, gist)
    return asked if asked is not None and sender_matches(gist.sole_sender, ledger.waits[asked].who) else None


def _approval(ledger: Ledger, gist: Gist) -> Accepted | None:
    if gist.answer is None:
        return None
    asked = _asked_by(ledger, gist)
    if asked is None or not sender_matches(gist.sole_sender, ledger.waits[asked].who):
        return None
    decision = Decision(approved=gist.answer.approved, by=gist.sender, text=gist.answer.comment, via="mail")
    return Accepted(asked, decision)


def _asked_by(ledger: Ledger, gist: Gist) -> CallId | None:
    """The open approval that a mail speaks to.

    The newest of the run's own mails that it names decides: if that one asked for an open approval, it is this; if it
    was another one (an approval that is decided already, say), the mail is about that, and a late second "yes" can't
    approve something else. A mail that names only mails of other people in the thread speaks to the one open approval.
    """
    requests = {wait.request.encode(): call for call, wait in ledger.waits.items() if wait.park == "approval"}
    named = thread_candidates(gist)
    sent = {each.encode() for each in ledger.sent}
    own = next((each for each in named if each in sent), None)
    if own is not None:
        return requests.get(own)
    received = {each.encode() for each in ledger.received}
    if len(requests) == 1 and any(each in received for each in named):
        return next(iter(requests.values()))
    return None
