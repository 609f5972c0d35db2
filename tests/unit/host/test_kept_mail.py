"""Mail that no run has, as lists show it: read in portions, named by deployment and number."""

import pytest

from substrate.indexing import kept
from substrate.messages import (
    Approval,
    Claim,
    Enqueue,
    Kept,
    LogPage,
    Planned,
    ReadApprovals,
    ReadHold,
    ReadLog,
    ReadRejected,
    ReadRuns,
    ReadSchedules,
    Reject,
    RejectedPage,
    RunLine,
)
from substrate.questions import answer, read_approvals
from waypost.host.errors import AmbiguousMail, NotOnHold
from waypost.host.reading.explain import Situation
from waypost.host.reading.queued import named_on_hold, on_hold, rejected
from waypost.host.reading.reasons import of_mail, of_run
from waypost.model.ids import RunId
from waypost.testing.desk import ADDRESS, Desk, message
from waypost.testing.sayings import check_reason


class Desks:
    """Several deployments, asked in portions of a few entries."""

    def __init__(self, **desks: Desk) -> None:
        self.desks = desks

    def situations(self) -> tuple[Situation, ...]:
        """Each of them."""
        return tuple(Situation(name=name, address=ADDRESS, hosted=False) for name in self.desks)

    def runs(self, deployment: str, limit: int, before: RunId | None = None) -> tuple[RunLine, ...]:
        """Its runs."""
        return answer(self.desks[deployment].index, ReadRuns(limit=limit, before=before))

    def page(self, deployment: str, run: RunId, after: int) -> LogPage | None:
        """Events of a run."""
        page = answer(self.desks[deployment].index, ReadLog(run=run, after=after, limit=1000))
        return page if isinstance(page, LogPage) else None

    def approvals(self, deployment: str) -> tuple[Approval, ...]:
        """From its runs."""
        return read_approvals(self.desks[deployment].index, ReadApprovals(limit=100)).found

    def on_hold(self, deployment: str, limit: int) -> tuple[Kept, ...]:
        """From its index."""
        return answer(self.desks[deployment].index, ReadHold(limit=limit))

    def rejected(self, deployment: str, cursor: tuple[int, int] | None) -> RejectedPage:
        """From its buckets."""
        return answer(self.desks[deployment].index, ReadRejected(cursor=cursor, limit=3))

    def schedules(self, deployment: str) -> tuple[Planned, ...]:
        """From its files."""
        return answer(self.desks[deployment].index, ReadSchedules())


def desk(*, held: int = 0, refused: int = 0, taken: int = 0) -> Desk:
    """So many mails of each kind."""
    made = Desk()
    made.begin()
    for number in range(refused):
        arrival = made.enqueue(message(f"r{number}@x"))
        made.must(Claim(arrival))
        made.must(Reject(arrival, "malformed"))
    for number in range(taken):
        made.start(message(f"t{number}@x"))
    made.enqueue(message("m@x"))
    for number in range(held):
        made.must(Enqueue(message("m@x", text=f"another {number}")))
    made.check()
    return made


def test_what_was_rejected_is_found_among_the_consumed_portion_by_portion() -> None:
    """Whoever asks holds up no append for long, and misses none; how many there ever were is counted beside it."""
    source = Desks(a=desk(refused=20, taken=20), b=desk(refused=1))
    found = rejected(source)
    assert len({each.mail for each in found.mails}) == 21
    assert {each.why for each in found.mails} == {"malformed"}
    assert found.counted == 21
    page = kept.rejected(source.desks["a"].index, ADDRESS, source.desks["a"].index.state, ReadRejected(limit=3))
    assert page.cursor is not None


def test_a_mail_on_hold_says_what_it_is_and_what_it_clashes_with() -> None:
    """An operator decides by what they see."""
    (row,) = on_hold(Desks(expenses=desk(held=1))).mails
    assert (row.mail, row.why, row.clash, row.message_id) == ("expenses/2", "id-clash", "expenses/1", "<m@x>")


@pytest.mark.parametrize(
    ("text", "found"),
    [("2", ("a", 2)), ("a/2", ("a", 2)), ("3", AmbiguousMail), ("b/3", ("b", 3)), ("c/3", NotOnHold), ("x", NotOnHold)],
)
def test_a_number_is_enough_where_only_one_deployment_has_it_on_hold(text: str, found: object) -> None:
    """Numbers count per deployment, so a bare one may mean several; then nothing is done to any."""
    source = Desks(a=desk(held=2), b=desk(refused=1, held=1))
    if isinstance(found, tuple):
        assert named_on_hold(source, text) == found
    else:
        with pytest.raises(found):  # type: ignore[call-overload] # the table holds error types beside names
            named_on_hold(source, text)


def test_why_says_what_becomes_of_a_mail_that_no_run_has() -> None:
    """On hold it needs somebody; rejected it needs nobody any more; a mail that has a run is asked about by that."""
    source = Desks(expenses=desk(refused=1, held=1, taken=1))
    held = of_mail(source, "expenses/4")
    check_reason(held)
    assert (held.place, held.why, held.needed) == ("hold", "id-clash", True)
    assert held.command == "waypost queue release expenses/4"
    assert "it has the message id of mail expenses/3" in held.waits_for
    gone = of_mail(source, "1")
    check_reason(gone)
    assert (gone.place, gone.needed, gone.command) == ("rejected", False, "waypost queue rejected")
    assert gone.waits_for == "nothing: it was rejected (malformed)"
    for other in ("2", "77"):
        with pytest.raises(NotOnHold):
            of_mail(source, other)


def test_why_knows_since_when_the_mail_of_a_run_that_has_not_begun_lies_here() -> None:
    """There is no event yet that could say so."""
    source = Desks(expenses=desk())
    (line,) = source.runs("expenses", 10)
    answer = of_run(source, line.run)
    assert (answer.state, answer.waiting[-1].kind, answer.waiting[-1].since) == ("queued", "dispatch", line.started)
    assert answer.command == "waypost run"
