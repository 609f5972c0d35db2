"""``grants.json``: what was in force when a run began, fixed in the commit that starts it (decision 12).

    {"mail":["ann@example.com","boss@example.com"],"secrets":[],"steps":[{"contentHash":…,"grants":{…},"stepId":…}]}

``mail`` are the sender of its first mail and whom the workflow or an operator named; ``steps`` is the snapshot of what
was granted to its steps, left out where nothing was. What a run may do *now* is decided by what is granted now: a grant
that is taken back is taken back from runs that are under way.
"""

from collections.abc import Iterable
from shlex import quote

import msgspec
from msgspec import UNSET, UnsetType

from substrate import layout
from substrate.errors import Damaged
from substrate.granting import NOTHING_GRANTED, InForce
from substrate.operations.change import View
from substrate.runlog import Tree
from waypost.model import run as fold
from waypost.model.grants import NOTHING, RUN, Granted, may_mail
from waypost.model.ids import RunId
from waypost.model.mail import sender_matches


class Grants(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a run was given at its start. ``secrets``: always empty, as steps have them, not runs."""

    mail: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    steps: tuple[Granted, ...] | UnsetType = UNSET


_decoder = msgspec.json.Decoder(Grants)


def grants(sender: str, mail_to: Iterable[str], granted: InForce = NOTHING_GRANTED) -> Grants:
    """The grants of a new run: the sender of its first mail, and whom its workflow or an operator names; each once."""
    mail = granted.steps.get(RUN, NOTHING).mail
    named = mail_to if isinstance(mail, UnsetType) else mail
    return Grants(mail=tuple(dict.fromkeys(filter(None, (sender, *named)))), steps=granted.taken.steps or UNSET)


def may_mail_now(view: View, run: RunId, before: fold.Run, person: str) -> bool:
    """Whether a run may mail and ask this person now.

    What an operator has said of mail decides, ``*@domain`` included, beside the sender of the run's first mail; where
    none has, what the workflow declared when the run began. Neither a sender nor a workflow can make a pattern: what
    looks like one there is an address. Raises Damaged.
    """
    mail = view.granted.steps.get(RUN, NOTHING).mail
    ledger = fold.ledger(before)
    if isinstance(mail, UnsetType) or ledger is None:
        return sender_matches(person, grants_of(view, run).mail)
    return may_mail(mail, person) or sender_matches(person, (ledger.started.mail.sender,))


def no_grant(person: str, deployment: str) -> str:
    """What is said to a run that may not mail this person, and to whoever reads of it."""
    return f"no grant to mail {person[:200]}; `waypost grants set {deployment} --mail {quote(person[:200])}` gives it"


def encode_grants(record: Grants) -> bytes:
    """One line of JSON; its SHA-256 is in RunStarted."""
    return msgspec.json.encode(record)


def grants_of(tree: Tree, run: RunId) -> Grants:
    """A live run's grants, read strictly; none for a run that isn't there. Raises Damaged."""
    path = layout.grants_path(run)
    raw = tree.read(path)
    if raw is None:
        if tree.entries(layout.run_dir(run)):
            raise Damaged(path, "not a grants.json: the file is missing")
        return Grants(mail=())
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Damaged(path, f"not a grants.json: {bad}") from None
