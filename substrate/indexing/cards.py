"""What the derived index keeps of a run: its folded state and its subject, as bytes that say whether they are right.

A card is stamped with the id of the run's directory: it says how the run is in every tree in which that directory has
that id, and nothing of any other. Its bytes begin with their own hash, so what a torn or damaged file gives back is
never taken for a card. Some 700 bytes for a parked run.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias, assert_never

import msgspec

from substrate.messages import RunLine
from substrate.runlog import Known, Summary
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, RunId
from waypost.model.run import Ledger
from waypost.model.waiting import waiting_on

_HASH = 16


class Live(msgspec.Struct, frozen=True, array_like=True, tag="live"):
    """A run that hasn't ended. ``code`` and ``detail`` are those of its pause."""

    mode: Literal["driven", "parked", "paused"]
    ledger: Ledger
    prev: str
    folded: int
    changed: str
    code: str = ""
    detail: str = ""


class Over(msgspec.Struct, frozen=True, array_like=True, tag="over"):
    """A run that has ended and isn't sealed."""

    seq: int
    outcome: str
    started: ev.RunStarted
    unsent: Mapping[int, CallId]
    sent: frozenset[str]
    received: tuple[str, ...]
    prev: str
    folded: int
    changed: str
    children: Mapping[CallId, fold.ChildRun] = msgspec.field(default_factory=dict)


class Sealed(msgspec.Struct, frozen=True, array_like=True, tag="sealed"):
    """A run that is sealed: what a list shows of it."""

    outcome: str
    started: str
    changed: str
    seq: int
    arrival: int
    parent: str = ""


What: TypeAlias = Live | Over | Sealed


class Card(msgspec.Struct, frozen=True, array_like=True):
    """One run. ``tree`` is the id of its directory, in ``sealed/`` if it is sealed, otherwise in ``runs/``.

    ``subject`` is that of the mail that began it; None: nobody has looked yet.
    """

    run: RunId
    tree: str
    subject: str | None
    what: What


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Card)


def encode(card: Card) -> bytes:
    """The bytes of a card."""
    body = _encoder.encode(card)
    return hashlib.blake2b(body, digest_size=_HASH).digest() + body


def decode(raw: bytes) -> Card | None:
    """The card, or None: the bytes aren't those that were written, or another version wrote them."""
    body = raw[_HASH:]
    if hashlib.blake2b(body, digest_size=_HASH).digest() != raw[:_HASH]:
        return None
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError:
        return None


def card_of(run: RunId, tree: str, subject: str | None, known: Known) -> Card:
    """The card of a run that isn't sealed."""
    state = known.run
    what: What
    match state:
        case fold.Absent():
            raise AssertionError("it has not begun")
        case fold.Driven():
            what = Live("driven", state.ledger, known.prev, known.folded, known.changed)
        case fold.Parked():
            what = Live("parked", state.ledger, known.prev, known.folded, known.changed)
        case fold.Paused(ledger, code, detail):
            what = Live("paused", ledger, known.prev, known.folded, known.changed, code, detail)
        case fold.Ended(_, seq, outcome, started, unsent, sent, received, children):
            what = Over(
                seq, outcome, started, unsent, sent, received, known.prev, known.folded, known.changed, children
            )  # fmt: skip
        case _:
            assert_never(state)
    return Card(run, tree, subject, what)


def sealed_card(run: RunId, tree: str, subject: str | None, told: Summary) -> Card:
    """The card of a sealed run."""
    return Card(
        run, tree, subject, Sealed(told.outcome, told.started, told.changed, told.seq, told.arrival, told.parent)
    )


def known_of(card: Card) -> Known | None:
    """The run as its log tells it; None for a sealed one, of which the card knows less."""
    what = card.what
    match what:
        case Sealed():
            return None
        case Over():
            ended = fold.Ended(
                card.run, what.seq, what.outcome, what.started, what.unsent, what.sent, what.received, what.children
            )  # fmt: skip
            return Known(ended, what.seq, what.prev, what.folded, what.changed)
        case Live(mode="driven"):
            return Known(fold.Driven(what.ledger), what.ledger.seq, what.prev, what.folded, what.changed)
        case Live(mode="parked"):
            return Known(fold.Parked(what.ledger), what.ledger.seq, what.prev, what.folded, what.changed)
        case Live():
            paused = fold.Paused(what.ledger, what.code, what.detail)
            return Known(paused, what.ledger.seq, what.prev, what.folded, what.changed)
        case _:
            assert_never(what)


def parent_of(card: Card) -> str:
    """Whose child a run is; empty for one that is nobody's."""
    if isinstance(card.what, Sealed):
        return card.what.parent
    parent = card.what.started.parent if isinstance(card.what, Over) else card.what.ledger.started.parent
    return parent.run if parent else ""


def arrival_of(known: Known) -> int:
    """The mail that began a run that isn't sealed: its subject is the run's."""
    state = known.run
    assert not isinstance(state, fold.Absent), "it has not begun"
    started = state.started if isinstance(state, fold.Ended) else state.ledger.started
    return started.mail.arrival


def line_of(run: RunId, known: Known, subject: str = "") -> RunLine:
    """A run that has begun and isn't sealed, as a list shows it."""
    match known.run:
        case fold.Absent():
            raise AssertionError("it has not begun")
        case fold.Ended():
            state, started = known.run.outcome, known.run.started
        case fold.Driven():
            ledger = known.run.ledger
            state, started = "running" if ledger.cancel is None else "cancelling", ledger.started
        case fold.Parked():
            state, started = "parked", known.run.ledger.started
        case fold.Paused():
            state, started = "paused", known.run.ledger.started
        case _:
            assert_never(known.run)
    return RunLine(
        run=run,
        state=state,
        started=started.at,
        changed=known.changed,
        seq=known.seq,
        subject=subject,
        waiting=waiting_on(known.run),
        parent=parent.run if (parent := fold.parent_of(known.run)) else "",
    )


def line(card: Card, subject: Callable[[int], str]) -> RunLine:
    """A run as a list shows it, from its card; ``subject`` is asked where the card doesn't know."""
    known, what = known_of(card), card.what
    if known is not None:
        title = subject(arrival_of(known)) if card.subject is None else card.subject
        return line_of(card.run, known, title)
    assert isinstance(what, Sealed), "only of a sealed run the state isn't kept"
    return RunLine(
        run=card.run,
        state=what.outcome,
        started=what.started,
        changed=what.changed,
        seq=what.seq,
        subject=subject(what.arrival) if card.subject is None else card.subject,
        parent=what.parent,
    )
