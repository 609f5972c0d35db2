"""``grants.json``: what a run may do, fixed in the commit that starts it (decision 12)."""

from collections.abc import Iterable

import msgspec

from substrate import layout
from substrate.errors import Damaged
from substrate.runlog import Tree
from waypost.model.ids import RunId


class Grants(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whom a run may mail and ask, and which secrets its steps may read (none yet)."""

    mail: tuple[str, ...]
    secrets: tuple[str, ...] = ()


_decoder = msgspec.json.Decoder(Grants)


def grants(sender: str, mail_to: Iterable[str]) -> Grants:
    """The grants of a new run: the sender of its first mail, and whom its workflow names; each once."""
    return Grants(mail=tuple(dict.fromkeys(filter(None, (sender, *mail_to)))))


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
