"""Seeded corruptions: at least one bad commit for every rule of the book, against one repository that has everything.

Each is what a bug, or somebody with the host's key, could write on top of it; it must be refused by the writer's check
and found by ``fsck``, by the rule that it names.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
from msgspec import UNSET

from substrate import layout
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.testing.corrupted import DEPLOYED, NULL, STAMP, Bad, World, completed, recorded, started
from waypost.testing.corrupted_children import CHILDREN, UNSEEN_OF_CHILDREN
from waypost.testing.corrupted_schedules import SCHEDULES, UNSEEN
from waypost.testing.desk import ADDRESS, call
from waypost.testing.misdeeds import (
    DRAIN,
    LATCH,
    added,
    after_the_end,
    bare,
    begun,
    big,
    blob,
    code,
    crowd,
    ended_and_spoilt,
    folded_otherwise,
    from_nowhere,
    full_bucket,
    gap,
    huge,
    kept_folded,
    long_tail,
    mail_queued,
    misfiled,
    missing_value,
    not_given,
    notice,
    other_mail,
    outbox_path,
    reformatted,
    renamed_epoch,
    renamed_genesis,
    resegmented,
    reworded,
    sealed_and_written,
    segment,
    shifted,
    spoilt_seal,
    stray,
    swapped_outbox,
    tail,
    timers,
    twice,
    two_places,
    two_runs,
    unconsumed,
    unlisted,
    unlogged,
    unreadable_outbox,
    watermark,
    with_key,
)

Make = Callable[[World], Bad]


def signalled(identity: str, **changed: object) -> ev.SignalReceived:
    """A named signal."""
    event = ev.SignalReceived(signal=identity, name="paid", payload=NULL)
    return msgspec.structs.replace(event, **changed)


HOST = "supervisor"
CHILD = "workflow-process"
SECRET = b'{"secrets":["github"]}'
FAULT = ev.Fault(type="ChildCrashed", message="x")


def exited(attempt: int) -> ev.RunInterrupted:
    """An exit of the live run's child."""
    return ev.RunInterrupted(generation=Generation(2), attempt=attempt, reason="ended by SIGSEGV")


def granting(step: str, raw: bytes) -> Bad:
    """Something in a step's grants."""
    return Bad(puts={layout.step_grants_path(step): raw})


@dataclass(frozen=True, slots=True)
class Corruption:
    """What is done, and the rule that says no to it."""

    name: str
    rule: str
    make: Make

    @property
    def seen(self) -> bool:
        """Whether the tree alone shows it."""
        return self.name not in HISTORY


CORRUPTIONS: tuple[Corruption, ...] = (
    # --- names and records ---
    Corruption("a file of no layout", "path", lambda _: Bad(puts={"notes/todo.txt": b"x"})),
    Corruption(
        "an event in another spelling of its place",
        "path",
        lambda w: Bad(puts={tail(w).replace("/events/", "/events/0"): b"{}"}),
    ),
    Corruption("a directory without a bound", "bounded", crowd),
    Corruption("an event that is no event", "record", lambda w: Bad(puts={w.next(started(50))[0]: b"{}"})),
    Corruption("an event with a key of its own", "record", with_key),
    Corruption("a state that is none", "record", lambda _: Bad(puts={layout.STATE: b"[]"})),
    Corruption("a watermark that is none", "record", lambda _: Bad(puts={layout.watermark_path(ADDRESS): b"[]"})),
    Corruption("an entry that is none", "record", lambda w: Bad(puts={w.entry("inbox", w.inbox)[0]: b"{}"})),
    Corruption("an outbox entry that is none", "record", lambda w: Bad(puts={outbox_path(w): b"{}"})),
    Corruption("an event under another seq", "name", shifted),
    Corruption("an entry under another arrival", "name", misfiled),
    Corruption("an entry under another id", "name", lambda w: w.fresh("f@x", id="<other@x>")),
    Corruption("an entry for another address", "name", lambda w: w.fresh("f@x", address="other@example.com")),
    Corruption("a consumed mark in the inbox", "name", lambda w: w.fresh("f@x", consumed=STAMP)),
    Corruption("a notice under another ordinal", "name", lambda w: notice(w, ordinal=1)),
    Corruption("an entry that doesn't say why it is held", "name", lambda w: w.moved("processing", "hold", w.claimed)),
    Corruption("an entry that is held in the inbox", "name", lambda w: w.fresh("f@x", held=STAMP)),
    Corruption("a rejected entry in the inbox", "name", lambda w: w.fresh("f@x", rejected="x")),
    Corruption("an id that is no base64", "name", lambda w: w.fresh("f@x", base64=True)),
    Corruption("no counts", "missing", lambda _: Bad(deletes=(layout.STATE,))),
    Corruption("a mail is gone", "write-once", lambda _: Bad(deletes=(layout.mail_path(1),))),
    Corruption("a mail is changed", "write-once", lambda _: Bad(puts={layout.mail_path(1): b"x"})),
    Corruption("grants are changed", "write-once", lambda w: Bad(puts={layout.grants_path(w.live): b"{}"})),
    Corruption("grants are gone", "write-once", lambda w: Bad(deletes=(layout.grants_path(w.live),))),
    Corruption("a value is gone", "write-once", lambda w: Bad(deletes=(layout.blob_path(w.live, w.sha256),))),
    Corruption("a consumed entry is changed", "write-once", reworded),
    # --- logs ---
    Corruption("a gap", "sequence", gap),
    Corruption("a broken chain", "chain", lambda w: w.append(started(50), prev="0" * 64)),
    Corruption("a chain of another run", "chain", renamed_genesis),
    Corruption("an event is changed", "append-only", lambda w: Bad(puts={tail(w): w.next(started(50))[1]})),
    Corruption("an event is gone", "append-only", lambda w: Bad(deletes=(tail(w),))),
    Corruption("a segment is changed", "append-only", resegmented),
    Corruption("a segment is gone", "append-only", lambda w: Bad(deletes=(layout.segment_path(w.live, 1),))),
    Corruption("a folded event is back", "append-only", lambda w: Bad(puts={layout.event_path(w.live, 3): b"{}"})),
    Corruption("an exit is counted twice", "legal", lambda w: w.append(exited(2), author=HOST)),
    Corruption("a child counts its own exits", "author", lambda w: w.append(exited(1))),
    Corruption(
        "an exit of a generation that is over is counted",
        "generation",
        lambda w: Bad(puts={**w.counts(generation=3), **w.append(exited(1)).puts}),
    ),
    Corruption(
        "a step fails as crashed, and no exit is counted",
        "exits",
        lambda w: w.append(ev.StepFailed(call=call(40), error=FAULT, final=True, code="child-crashed"), author=HOST),
    ),
    Corruption(
        "a run is poison, and no exit is counted", "exits", lambda w: w.append(ev.RunPaused(code="poison"), author=HOST)
    ),
    Corruption("an event is changed as it is folded", "append-only", folded_otherwise),
    Corruption("a short segment", "tail", segment),
    Corruption("a tail over its bound", "tail", long_tail),
    Corruption("an event after the end", "terminal", after_the_end),
    Corruption("a step that is under way begins again", "legal", lambda w: w.append(started(40))),
    Corruption("a step that never began returns", "legal", lambda w: w.append(completed(77))),
    Corruption("a run that nobody cancelled is cancelled", "legal", lambda w: w.append(ev.RunCancelled())),
    Corruption(
        "a signal for a wait that isn't open",
        "legal",
        lambda w: w.append(signalled("x", call=call(77)), author="supervisor"),
    ),
    Corruption("an event over a MiB", "event-size", lambda w: w.append(big())),
    Corruption("a thousand timers and one", "open-calls", timers),
    Corruption("a folded event in two places", "append-only", kept_folded),
    # --- grants ---
    Corruption("grants that aren't in their one form", "grants", lambda _: granting("pay", b'{"secrets":["b","a"]}')),
    Corruption("grants without a bound", "grants", lambda _: granting("pay", b'{"secrets":["%s"]}' % (b"a" * 20_000))),
    Corruption("grants that say more", "grants", lambda _: granting("@run", b'{"files":["/"]}')),
    Corruption("a child grants itself a secret", "author", lambda _: replace(granting("pay", SECRET), author=CHILD)),
    *(Corruption(name, rule, make) for name, rule, make in SCHEDULES),
    *(Corruption(name, rule, make) for name, rule, make in CHILDREN),
    # --- code ---
    Corruption("a tree of code under another hash", "hash", lambda _: code({"x.py": b"x"}, "ab" * 32)),
    Corruption("a file is added to deployed code", "write-once", lambda _: code({"y.py": b"y"}, DEPLOYED.tree)),
    Corruption("deployed code is changed", "write-once", lambda _: code({"flow.py": b"y"}, DEPLOYED.tree)),
    Corruption(
        "deployed code is gone", "write-once", lambda _: Bad(deletes=(layout.code_path(DEPLOYED.tree, "flow.py"),))
    ),
    Corruption("code in another spelling", "path", lambda _: Bad(puts={f"{layout.code_dir(DEPLOYED.tree)}/%78": b"x"})),
    Corruption("no record of what is deployed", "missing", lambda _: Bad(deletes=(layout.DEPLOYED,))),
    Corruption("a record of code that is none", "record", lambda _: Bad(puts={layout.DEPLOYED: b"{}"})),
    Corruption("code is deployed that isn't there", "named", lambda _: recorded(tree="ab" * 32)),
    Corruption("another definition than is declared", "hash", lambda _: recorded(definition="ab" * 32)),
    Corruption("a folder of code outside of its tree", "record", lambda _: recorded(root="../x")),
    Corruption("a run begins on code that isn't there", "named", lambda w: begun(w, code="ab" * 32)),
    Corruption("a child deploys code", "author", lambda _: replace(recorded(module="x"), author="workflow-process")),
    # --- values ---
    Corruption("a value under another hash", "hash", lambda w: blob(w, b"x", "ab" * 32)),
    Corruption("a notice with other bytes", "hash", lambda w: notice(w, message="other")),
    Corruption("a run with other grants", "hash", lambda w: begun(w, grants="0" * 64)),
    Corruption("a run begins without its grants", "named", lambda w: bare(w, "/grants.json")),
    Corruption("grants of a run that doesn't begin", "unnamed", lambda w: bare(w, "/0000000001.json")),
    Corruption("a value that isn't there", "named", missing_value),
    Corruption("a value that nothing names", "unnamed", stray),
    Corruption("a value over 64 MiB", "value-size", huge),
    # --- sealing ---
    Corruption("a run is sealed that hasn't ended", "seal", spoilt_seal),
    Corruption("a sealed log is changed", "sealed", lambda w: Bad(puts={layout.sealed_log_path(w.sealed): b"x\n"})),
    Corruption("a sealed log is gone", "sealed", lambda w: Bad(deletes=(layout.sealed_log_path(w.sealed),))),
    Corruption(
        "a sealed value is gone", "sealed", lambda w: Bad(deletes=(layout.sealed_blob_path(w.sealed, w.sha256),))
    ),
    Corruption("a sealed run gets a value", "sealed", added),
    Corruption(
        "a sealed run gets other grants", "sealed", lambda w: Bad(puts={layout.sealed_grants_path(w.sealed): b"{}"})
    ),
    Corruption("a sealed run goes on", "sealed", lambda w: Bad(puts=dict([w.next(started(50), w.sealed)]))),
    Corruption("a run is taken away before it is sealed", "append-only", unlogged),
    Corruption("a run is sealed and goes on", "seal", sealed_and_written),
    Corruption("a log is sealed short", "seal", lambda w: ended_and_spoilt(w, lambda log: log.partition(b"\n")[2])),
    Corruption("a log is sealed otherwise", "seal", lambda w: ended_and_spoilt(w, lambda log: log.replace(b"3", b"4"))),
    Corruption("a file is left behind by a seal", "seal", lambda w: ended_and_spoilt(w, lambda log: log, keep=True)),
    # --- the queue ---
    Corruption("a mail is copied", "one-place", twice),
    Corruption("a taken id comes again", "one-place", lambda w: w.fresh("inbox@x")),
    Corruption("a consumed id comes again", "one-place", lambda w: w.fresh("new@x")),
    Corruption("an id of a closed bucket comes again", "one-place", lambda w: w.fresh("old@x")),
    Corruption("a claim goes to two places", "one-place", two_places),
    Corruption("a mail vanishes", "lost", lambda w: Bad(deletes=(w.entry("inbox", w.inbox)[0],))),
    Corruption("a mail on hold vanishes", "lost", lambda w: Bad(deletes=(w.entry("hold", w.held)[0],))),
    Corruption("a claim changes the entry", "move", lambda w: w.moved("inbox", "processing", w.inbox, sender="x")),
    Corruption("a mail changes its sender", "move", lambda w: w.moved("processing", "inbox", w.claimed, sender="x")),
    Corruption("a claim is counted twice", "move", lambda w: w.moved("inbox", "processing", w.inbox, claim=2)),
    Corruption(
        "a mail is consumed without a claim",
        "move",
        lambda w: w.moved("inbox", "consumed", w.inbox, consumed=STAMP, rejected="x"),
    ),
    Corruption("a run begins with a mail that nobody claimed", "move", lambda w: begun(w, claimed=False)),
    Corruption("a new mail with attempts", "move", lambda w: w.fresh("f@x", attempt=2)),
    Corruption(
        "a claim that comes back counts twice", "move", lambda w: w.moved("processing", "inbox", w.claimed, attempt=7)
    ),
    Corruption(
        "a mail that is let in keeps its attempts",
        "move",
        lambda w: w.moved("hold", "inbox", w.held, attempt=2, held=UNSET, why=UNSET),
    ),
    Corruption("a mail that was never queued is claimed", "move", from_nowhere),
    Corruption("a mail goes from hold to processing", "move", lambda w: w.moved("hold", "processing", w.held)),
    Corruption("an arrival that isn't the next", "ordinals", lambda w: w.skipped("f@x")),
    Corruption("a mail's bytes are others", "mail", lambda w: w.fresh("f@x", sha256="0" * 64)),
    Corruption("a mail without an entry", "mail", unlisted),
    Corruption(
        "consumed without an event", "effect", lambda w: w.moved("processing", "consumed", w.claimed, consumed=STAMP)
    ),
    Corruption("a run begins with a mail that isn't consumed", "effect", unconsumed),
    Corruption("a run begins with another mail", "effect", other_mail),
    Corruption("a run of another origin", "effect", lambda w: begun(w, origin="0" * 64)),
    Corruption("a consumed entry leaves alone", "bucket", lambda w: Bad(deletes=(w.consumed(1),))),
    Corruption(
        "a consumed entry leaves with a watermark that is none",
        "record",
        lambda w: Bad(puts={layout.watermark_path(ADDRESS): b"[]"}, deletes=(w.consumed(1),)),
    ),
    Corruption("a consumed entry goes to a closed bucket", "bucket", full_bucket),
    Corruption("the bucket's count is wrong", "bucket", lambda w: Bad(puts=w.counts(bucket_entries=9))),
    Corruption("a closing time is changed", "watermark", lambda _: watermark(0, ("2020-01-01T00:00:00.000Z",))),
    Corruption("the open bucket is dropped", "watermark", lambda _: watermark(2, ())),
    # --- the outbox ---
    Corruption("a mail goes out without its event", "outbox", lambda w: Bad(deletes=(outbox_path(w),))),
    Corruption(
        "a mail fails and stays",
        "outbox",
        lambda w: w.append(ev.MailFailed(call=call(2), reason="x", ordinal=2), author="supervisor"),
    ),
    Corruption("MailQueued without its entry", "outbox", mail_queued),
    Corruption(
        "MailSent without its entry",
        "outbox",
        lambda w: w.append(ev.MailSent(call=call(2), ordinal=2), author="supervisor"),
    ),
    Corruption("a mail in the outbox is changed", "write-once", swapped_outbox),
    Corruption("MailQueued with another call's entry", "outbox", unreadable_outbox),
    Corruption("a notice of a run", "outbox", lambda w: notice(w, run=w.live)),
    # --- counts ---
    Corruption(
        "a run begins whose number isn't given yet",
        "ordinals",
        lambda w: begun(w, RunId(f"run_{w.state.run}_00112233445566aa")),
    ),
    Corruption("an ordinal goes back", "ordinals", lambda w: Bad(puts=w.counts(arrival=1))),
    Corruption("an ordinal is skipped", "ordinals", lambda w: Bad(puts=w.counts(outbox=w.state.outbox + 1))),
    Corruption("the generation goes back", "ordinals", lambda w: Bad(puts=w.counts(generation=0))),
    Corruption("a generation is skipped", "generation", lambda w: Bad(puts=w.counts(generation=9))),
    Corruption(
        "a run is resumed by a generation to come",
        "generation",
        lambda w: w.append(ev.RunResumed(generation=Generation(9)), author="supervisor"),
    ),
    Corruption(
        "a generation begins under a latch",
        "latch",
        lambda w: Bad(puts=w.counts(latch=LATCH, generation=w.state.generation + 1)),
    ),
    Corruption("drained, and held", "drain", lambda w: Bad(puts=w.counts(held="drain", drain=DRAIN))),
    Corruption("another repository id", "format", lambda _: reformatted(repository="another")),
    Corruption("an epoch without its record", "record", lambda _: reformatted(epoch=2)),
    Corruption("another deployment", "format", lambda _: reformatted(deployment="other")),
    Corruption("an epoch of another number", "format", lambda _: renamed_epoch(epoch=3)),
    Corruption("an epoch that doesn't hold", "format", lambda _: renamed_epoch()),
    Corruption("an epoch whose record is none", "record", lambda _: renamed_epoch(epoch=1)),
    Corruption("held without an epoch", "format", lambda w: Bad(puts=w.counts(held="restore"))),
    Corruption("held since then, and not held", "format", lambda w: Bad(puts=w.counts(held_at=STAMP))),
    Corruption("another address", "format", lambda _: reformatted(address="x@example.com")),
    # --- who ---
    Corruption("a commit by nobody we know", "author", lambda w: w.append(started(50), author="reader")),
    Corruption(
        "a child fires its own timer", "author", lambda w: w.append(ev.TimerFired(call=call(40), timer=call(40)))
    ),
    Corruption(
        "a child asks for a run's end by itself",
        "author",
        lambda w: w.append(ev.CancelRequested(origin="self", reason="enough")),
    ),
    Corruption(
        "the host speaks for an administrator",
        "author",
        lambda w: w.append(ev.CancelRequested(origin="hub-admin", reason="enough"), author="supervisor"),
    ),
    Corruption("a child signals its own run", "author", lambda w: w.append(signalled("x"))),
    Corruption("the host completes a step", "author", lambda w: w.append(completed(40), author="supervisor")),
    Corruption(
        "a child moves mail",
        "author",
        lambda w: replace(w.moved("inbox", "processing", w.inbox), author="workflow-process"),
    ),
    Corruption("a child writes to two runs", "fence", two_runs),
    Corruption("a child brings grants", "author", lambda w: replace(begun(w), author="workflow-process")),
    Corruption("a child writes to a run it wasn't given", "fence", not_given),
)

HISTORY = {
    *UNSEEN,
    *UNSEEN_OF_CHILDREN,
    "a child asks for a run's end by itself",
    "the host speaks for an administrator",
    "a child signals its own run",
    "a run begins on code that isn't there",
    "a child deploys code",
    "a consumed entry is changed",
    "an event is gone",
    "a mail vanishes",
    "a mail on hold vanishes",
    "a claim changes the entry",
    "a mail changes its sender",
    "a claim is counted twice",
    "a run begins with a mail that nobody claimed",
    "a mail is consumed without a claim",
    "a new mail with attempts",
    "a mail that was never queued is claimed",
    "a mail without an entry",
    "a run of another origin",
    "a closing time is changed",
    "an ordinal is skipped",
    "a generation is skipped",
    "a generation begins under a latch",
    "another deployment",
    "a child counts its own exits",
    "an exit of a generation that is over is counted",
    "a step fails as crashed, and no exit is counted",
    "a run is poison, and no exit is counted",
    "a commit by nobody we know",
    "the host completes a step",
    "a child moves mail",
    "a child writes to a run it wasn't given",
    "a child writes to two runs",
    "a child brings grants",
    "a child grants itself a secret",
    "a mail in the outbox is changed",
    "an epoch that doesn't hold",
    "a claim that comes back counts twice",
    "a mail that is let in keeps its attempts",
}
"""What only the commit shows: the tree after it is one that there could be."""
