"""The rule that holds parents and their children to each other: each half of what belongs together is refused alone."""

from collections.abc import Callable

import msgspec

from substrate import layout
from substrate.messages import Append, Reject
from substrate.operations import Change
from substrate.rules import Commit, Ground, judge, proposed
from substrate.rules.plain import plain_append
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.testing.desk import ADDRESS, REPOSITORY, call
from waypost.testing.families import FAILED, ONE, Family

FIRST = call(1)
LET_GO = ev.ChildCancelRequested(call=FIRST)


def _twins(make: Callable[[Family], RunId]) -> tuple[Family, Family, RunId]:
    one, other = Family(), Family()
    run = make(one)
    assert make(other) == run
    return one, other, run


def _judged(
    family: Family, puts: dict[str, bytes], gone: tuple[str, ...], author: str = "workflow-process"
) -> set[str]:
    commit = Commit(author=author, puts=puts, deletes=gone)
    verdict = judge(family.desk.index, commit, Ground(repository=REPOSITORY, address=ADDRESS, limits=Limits()))
    return {each.rule for each in verdict.broken}


def _with_a_child(family: Family) -> RunId:
    run = family.root()
    family.child(run, FIRST)
    return run


def _with_a_queued_child(family: Family) -> RunId:
    run = family.root()
    family.spawn(run, FIRST)
    return run


def _of(family: Family, run: RunId) -> dict[str, bytes]:
    return {path: raw for path, raw in family.desk.changes[-1].puts.items() if run in path}


def test_neither_half_of_an_end_may_stand_alone() -> None:
    """The child's end without the parent's word would be a parent that waits for ever; the other is a lie."""
    one, other, run = _twins(_with_a_child)
    child = one.ledger(run).children[FIRST].child
    one.desk.append(child, ONE)
    assert not _judged(other, _of(one, run) | _of(one, child), ())
    assert _judged(other, _of(one, child), ()) == {"child"}
    assert "child" in _judged(other, _of(one, run), (), author="supervisor")
    ((path, raw),) = _of(one, run).items()
    event = ev.decode(raw)
    assert isinstance(event, ev.ChildCompleted)
    lies = (
        msgspec.structs.replace(event, result=ev.Value(inline=msgspec.Raw(b"2"))),
        ev.ChildCompleted(call=FIRST, outcome="failed", error=ev.Fault(type="E", message="")),
        ev.ChildCompleted(call=FIRST, outcome="cancelled", error=ev.Fault(type="E", message="")),
    )
    for lie in lies:
        changed = ev.stored(lie, seq=event.seq, at=event.at, prev=event.prev)[1]
        assert _judged(other, {path: changed} | _of(one, child), ()) == {"child"}


def test_that_a_run_rests_goes_the_short_way() -> None:
    """Each run that comes to rest may say so: it is paid for like any step."""
    family = Family()
    run = family.root()
    made = family.desk.decide(Append(by=family.by, run=run, events=(ev.CodeRested(seen=1),)))
    assert isinstance(made, Change)
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=Limits())
    assert plain_append(family.desk.index, proposed(made), ground) is not None


def test_a_failure_of_a_child_goes_no_short_way() -> None:
    """RunFailed alone is the plainest of appends, but for a run that somebody awaits, or that awaits somebody."""
    one, other, run = _twins(_with_a_child)
    child = one.ledger(run).children[FIRST].child
    one.desk.append(child, FAILED)
    assert _judged(other, _of(one, child), ()) == {"child"}
    one, other, run = _twins(_with_a_child)
    one.desk.append(run, FAILED)
    assert _judged(other, _of(one, run), ()) == {"child"}


def test_a_parent_that_ends_or_lets_go_leaves_no_child_untold() -> None:
    """And nobody is cancelled in a parent's name who isn't let go of."""
    for event in (ONE, LET_GO):
        one, other, run = _twins(_with_a_child)
        child = one.ledger(run).children[FIRST].child
        one.desk.append(run, event)
        assert not _judged(other, _of(one, run) | _of(one, child), ())
        assert _judged(other, _of(one, run), ()) == {"child"}
        assert "child" in _judged(other, _of(one, child), (), author="supervisor")


def test_what_follows_is_all_that_a_child_process_may_write_beside_its_run() -> None:
    """Its own hand in another run's log, or in the queue, would be the way around every grant."""
    one, other, run = _twins(_with_a_queued_child)
    child = one.ledger(run).children[FIRST].child
    one.desk.append(run, LET_GO)
    change = one.desk.changes[-1]
    puts, gone = dict(change.puts), tuple(change.deletes)
    assert not _judged(other, puts, gone)
    without = {path: raw for path, raw in puts.items() if run not in path}
    assert _judged(other, without, gone) >= {"child"}
    began = layout.event_path(child, 1)
    stays = {path: raw for path, raw in puts.items() if path not in {layout.event_path(child, seq) for seq in (2, 3)}}
    assert _judged(other, stays, gone) >= {"author"}
    assert began in puts
    foreign = {**puts, layout.mail_path(9): b"From: a@x\r\n\r\n"}
    assert "author" in _judged(other, foreign, gone)


def test_a_rejection_that_a_parent_is_not_told_breaks_the_rule() -> None:
    """It would wait for a run that never comes."""

    def claimed(family: Family) -> RunId:
        run = _with_a_queued_child(family)
        family.claim(run, FIRST)
        return run

    one, other, run = _twins(claimed)
    one.desk.must(Reject(2, "no-room"))
    change = one.desk.changes[-1]
    assert not _judged(other, dict(change.puts), tuple(change.deletes), author="supervisor")
    without = {path: raw for path, raw in change.puts.items() if run not in path}
    assert _judged(other, without, tuple(change.deletes), author="supervisor") == {"child"}


def test_a_child_process_ends_no_run_without_its_code_but_for_a_parents_sake() -> None:
    """That a run's code never ran is the host's to say."""

    def cancelled(family: Family) -> RunId:
        run = _with_a_child(family)
        family.desk.must(family.cancel(run))
        return run

    one, other, run = _twins(cancelled)
    one.desk.append(run, ev.RunCancelled())
    puts = dict(one.desk.changes[-1].puts)
    path = layout.event_path(run, 4)
    event = ev.decode(puts[path])
    not_run = ev.stored(ev.RunCancelled(code="not-run"), seq=4, at=event.at, prev=event.prev)[1]
    assert not _judged(other, puts, ())
    assert _judged(other, {**puts, path: not_run}, ()) == {"author"}


def test_a_child_is_not_spawned_and_ended_by_one_commit() -> None:
    """Nobody could have run it."""
    one, other, run = _twins(lambda family: family.root())
    one.spawn(run, FIRST)
    puts = dict(one.desk.changes[-1].puts)
    spawned = ev.decode(puts[layout.event_path(run, 2)])
    error = ev.Fault(type="E", message="")
    ended_at_once = ev.ChildCompleted(call=FIRST, outcome="failed", error=error)
    raw = ev.stored(ended_at_once, seq=3, at=spawned.at, prev=ev.digest(puts[layout.event_path(run, 2)]))[1]
    assert _judged(other, {**puts, layout.event_path(run, 3): raw}, (), author="supervisor") == {"child"}


def test_a_whole_tree_shows_a_child_that_nobody_awaits_and_a_parent_that_awaits_nobody() -> None:
    """As ``fsck --tip`` sees it, without the commits."""
    family = Family()
    run = family.root()
    child, queued = family.child(run, call(1)), family.spawn(run, call(2))
    family.check()
    files = dict(family.files.files)

    def broken(*without: RunId, mail: bool = True) -> list[str]:
        kept = {path: raw for path, raw in files.items() if not any(each in path for each in without)}
        family.files.files = {path: raw for path, raw in kept.items() if mail or "/inbox/" not in path}
        return [str(each) for each in family.broken() if each.rule == "child"]

    assert broken() == []
    (gone,) = broken(child)
    assert f"{call(1)} awaits {child}, which neither is queued nor goes on" in gone
    assert len(broken(run)) == 2
    (lost,) = broken(mail=False)
    assert queued in lost


def test_a_whole_tree_shows_a_child_that_was_let_go_of_and_goes_on() -> None:
    """Both logs are there, and one has an event less."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST)
    family.desk.append(run, LET_GO)
    family.check()
    del family.files.files[layout.event_path(child, 2)]
    (found,) = [str(each) for each in family.broken()]
    assert f"a child of {run}, which doesn't await it, and goes on" in found
