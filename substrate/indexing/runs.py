"""What is known of runs: those touched lately in memory, the others in the derived index, the tree behind both.

A run's card holds where it is stamped with the id of the run's directory; where there is none that does, the log is
folded. ``settle`` moves what was touched, and is durable, into the index in small portions; what then stays in memory
are the folds of a bounded number of runs.
"""

import dataclasses
import heapq
import itertools
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from substrate import layout, runlog
from substrate.indexing.cards import arrival_of, card_of, known_of, line_of, sealed_card
from substrate.indexing.covering import stamp_of
from substrate.indexing.derived import DRIVEN, OVER, Row
from substrate.indexing.listing import told_line
from substrate.indexing.standby import Standby
from substrate.messages import RunLine
from substrate.routing import Standing, Thread, Threads
from substrate.runlog import ABSENT, Known, Rooted, Summary
from waypost.model import run as fold
from waypost.model.deadlines import Deadline, deadlines
from waypost.model.ids import RunId, is_run_id, run_ordinal
from waypost.model.waiting import kinds_of

_PORTION = 64
"""Runs that are written into the derived index at once: some 3 ms."""
_HEAVY = 512
"""Parts from which on a run's state is not kept once it is in the index: 150 KB, about; see ``_weight``."""


@dataclass(frozen=True, slots=True)
class _Durable:
    """A run at the moment from which the index is written: its directory's id, and keys that are new to the index."""

    known: Known
    tree: str
    sealed: bool
    keys: tuple[str, ...]


class Runs:
    """The runs of one repository. ``folds``: states that are kept of runs which nobody has touched lately."""

    def __init__(
        self, tree: Rooted, derived: Standby, threads: Threads, subject: Callable[[int], str], folds: int
    ) -> None:
        self._tree, self._derived, self._threads, self._subject, self._folds = tree, derived, threads, subject, folds
        self._touched: dict[RunId, Known] = {}
        self._settling: dict[RunId, _Durable] = {}
        """Touched before those, and being written into the index."""
        self._stamp, self._next = derived.stamped(), derived.stamped()
        self._named: dict[RunId, dict[str, None]] = {}
        """Keys of messages by the run that they belong to, which aren't in the index yet."""
        self._recent: OrderedDict[RunId, Known] = OrderedDict()

    def known(self, run: RunId) -> Known:
        """A run's state; one that isn't in memory is asked of the index, or read. ``ABSENT`` when it has none."""
        found = self._in_memory(run)
        if found is None:
            found = self._look_up(run)
            if found is not ABSENT:
                self._remember(run, found)
        return found

    def standing(self, run: RunId) -> Standing:
        """Whether the run is absent, live or ended."""
        if self._in_memory(run) is None and runlog.is_sealed(self._tree, run):
            return "ended"
        match self.known(run).run:
            case fold.Absent():
                return "absent"
            case fold.Ended():
                return "ended"
            case _:
                return "live"

    def _in_memory(self, run: RunId) -> Known | None:
        found = self._touched.get(run)
        if found is None and (settling := self._settling.get(run)) is not None:
            return settling.known
        return found or self._recent.get(run)

    def _look_up(self, run: RunId) -> Known:
        if not is_run_id(run):
            return ABSENT
        card = self._derived.card(run)
        if card is not None and card.tree == self._tree.directory_id(layout.run_dir(run)):
            known = known_of(card)
            if known is not None:
                return known
        return runlog.load(self._tree, run)

    def driven(self) -> tuple[fold.Driven, ...]:
        """The states of the runs whose code has something to do, oldest first."""
        runs = {*self._derived.all_in(DRIVEN), *self._settling, *self._touched}
        found = (self.known(run).run for run in sorted(runs, key=run_ordinal))
        return tuple(run for run in found if isinstance(run, fold.Driven))

    def unended(self, after: int) -> Iterator[RunId]:
        """The runs with an ordinal above ``after`` that may be live, oldest first."""
        fresh = (run for run in {*self._settling, *self._touched} if run_ordinal(run) > after)
        found = heapq.merge(self._derived.unended(after), sorted(fresh, key=run_ordinal), key=run_ordinal)
        return (run for run, _ in itertools.groupby(found))

    def deadlines(self, after: Deadline | None) -> Iterator[Deadline]:
        """The open deadlines of all runs in the order of firing, from the first one behind ``after``."""
        fresh = self._fresh()
        return self._derived.deadlines(
            after, fresh, (each for known in fresh.values() for each in deadlines(known.run))
        )

    def waiting(self) -> Counter[str]:
        """How many live runs wait on what: the kinds in one word each, blanks between."""
        fresh = self._fresh()
        found = self._derived.waiting(fresh)
        for known in fresh.values():
            if not isinstance(known.run, fold.Absent | fold.Ended):
                found[" ".join(kinds_of(known.run))] += 1
        return +found

    def open_deadlines(self) -> int:
        """How many deadlines are open."""
        fresh = self._fresh()
        return self._derived.open_deadlines(fresh) + sum(len(deadlines(known.run)) for known in fresh.values())

    def newest(self) -> RunId | None:
        """The newest run in the index that is nobody's child."""
        return self._derived.newest()

    def over(self) -> list[RunId]:
        """The runs in the index that have ended and aren't sealed, oldest first."""
        return self._derived.all_in(OVER)

    def line(self, run: RunId) -> RunLine:
        """A run that has begun, as a list shows it. Raises Damaged."""
        known = self._in_memory(run)
        if known is not None:
            return line_of(run, known, self._subject(arrival_of(known)))
        return told_line(self._tree, run, self._derived.card(run), self._subject)

    def _fresh(self) -> dict[RunId, Known]:
        """The runs of which the index may know another state."""
        return {**{run: each.known for run, each in self._settling.items()}, **self._touched}

    # --- what changes ------------------------------------------------------------------------------------------------

    def touch(self, run: RunId, known: Known) -> None:
        """A run is now like this."""
        self._touched[run] = known

    def name(self, run: RunId, key: str) -> None:
        """The message with this key belongs to the run."""
        self._named.setdefault(run, {})[key] = None

    # --- into the derived index --------------------------------------------------------------------------------------

    def begin_to_settle(self, repository: str) -> bool:
        """All that is visible now is durable: begin to write it into the index; whether there is something to write.

        Raises DerivedFailed, as ``settle`` does.
        """
        if self._touched and not self._settling and self._stamp is not None:
            self._next = stamp_of(self._tree, repository)
            self._derived.put((), dataclasses.replace(self._stamp, ahead=self._next.at))
            # What follows may be lost in a crash: so each row is of this moment, also where its run goes on meanwhile.
            self._settling = {run: self._as_it_is(run, known) for run, known in self._touched.items()}
            self._touched, self._named = {}, {}
        return bool(self._settling)

    def settle(self, portion: int = _PORTION) -> bool:
        """Write some of it; whether there is more."""
        taken = list(itertools.islice(self._settling.items(), portion))
        last = len(taken) == len(self._settling)
        self._derived.put([self._row(each) for _, each in taken], self._next if last else None)
        for run, each in taken:
            del self._settling[run]
            self._threads.archived(Thread(run, None, each.keys))
            if run not in self._touched:
                self._remember(run, each.known)
        if last:
            self._stamp = self._next
        return not last

    def _as_it_is(self, run: RunId, known: Known) -> _Durable:
        sealed = isinstance(known.run, fold.Ended) and runlog.is_sealed(self._tree, run)
        tree = self._tree.directory_id(layout.sealed_dir(run) if sealed else layout.run_dir(run))
        return _Durable(known, tree, sealed, tuple(self._named.get(run, ())))

    def _row(self, durable: _Durable) -> Row:
        known, state = durable.known, durable.known.run
        arrival = arrival_of(known)
        subject = self._subject(arrival)
        if isinstance(state, fold.Ended):
            run = state.run
        else:
            assert not isinstance(state, fold.Absent), "it has not begun"
            run = state.ledger.run
        if durable.sealed and isinstance(state, fold.Ended):
            parent = state.started.parent.run if state.started.parent else ""
            told = Summary(state.outcome, state.started.at, known.changed, known.seq, arrival, parent)
            card = sealed_card(run, durable.tree, subject, told)
        else:
            card = card_of(run, durable.tree, subject, known)
        return Row(card, self._threads.root(run), durable.keys)

    def _remember(self, run: RunId, known: Known) -> None:
        ledger = fold.ledger(known.run)
        if ledger is not None and _weight(ledger) > _HEAVY:
            self._recent.pop(run, None)
            return
        self._recent[run] = known
        self._recent.move_to_end(run)
        while len(self._recent) > self._folds:
            self._recent.popitem(last=False)


def _weight(ledger: fold.Ledger) -> int:
    """What a state consists of, roughly: each part costs some 300 bytes."""
    return ledger.open_calls + len(ledger.received) + len(ledger.sent) + len(ledger.signal_ids) // 4
