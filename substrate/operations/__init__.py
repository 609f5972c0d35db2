"""Every write as a pure decision: (view, operation, context) to one commit, or Refused.

    change      what a decision sees and yields
    append      events into a run's log; blobs held for them; ``extend``, which all others use
    intake      enqueue, claim, release, reject, begin a generation
    hold        mail that an operator must look at: onto hold, and off it
    placing     which run a mail is for
    known_ids   whether a mail was accepted before
    buckets     where consumed entries go, and when they are dropped
    take_up     a mail and its effect in one commit
    outbox      mail that leaves
    spawning    a run starts a child run
    kinship     what the end of a run means to its parent and its children
    answering   how it names what it answers
    notices     what the host itself tells a sender
    interrupting  an exit, counted against the runs that the child drove
    interventions  what an operator does to a run: answers, pauses, lets go on
    service     a deployment is drained, held, and goes on
    latching    no child any more, and one again
    deploying   the code that runs from now on
    cancelling  asking for a run's end; named signals
    grants      what a run may do
    granting    what its steps may, as an operator grants it
    ticking     a schedule comes further
    sealing     a finished run folds away; nobody asks for it

No clock, no randomness, no file: those come in with the context and the view.
"""

from typing import assert_never

from substrate.messages import (
    Answer,
    Append,
    BeginGeneration,
    Cancel,
    ChangeGrants,
    Claim,
    Deploy,
    DrainDeployment,
    Enqueue,
    HoldDeployment,
    Interrupt,
    LatchDeployment,
    MailDelivered,
    MailUndeliverable,
    NoAnswer,
    NoteDrain,
    Operation,
    Pause,
    PutBlob,
    QueueMail,
    Reject,
    RejectHeld,
    Release,
    ReleaseHeld,
    ResetDeployment,
    ResumeDeployment,
    ResumeRuns,
    Signal,
    SpawnChild,
    TakeUp,
    Tick,
    Unpause,
)
from substrate.operations import (
    append,
    cancelling,
    deploying,
    granting,
    hold,
    intake,
    interrupting,
    interventions,
    kinship,
    latching,
    notices,
    outbox,
    resuming,
    service,
    spawning,
    take_up,
    ticking,
)
from substrate.operations.change import Change, Context, Decided, Hold, Item, Settled, View

__all__ = ["Change", "Context", "Decided", "Hold", "Item", "Settled", "View", "decide"]


def decide(view: View, operation: Operation, context: Context) -> Decided:
    """What an operation comes to on what is visible now, with all that follows from it for parents and children.

    Raises Damaged where the tree can't be read.
    """
    made = _decide(view, operation, context)
    return kinship.settled(view, made, context) if isinstance(made, Change) else made


def _decide(view: View, operation: Operation, context: Context) -> Decided:  # noqa: C901, PLR0911, PLR0912 - a table
    match operation:
        case Append():
            return append.append(view, operation, context)
        case PutBlob():
            return append.put_blob(view, operation, context)
        case Enqueue():
            return intake.enqueue(view, operation, context)
        case Claim():
            return intake.claim(view, operation, context)
        case TakeUp():
            return take_up.take_up(view, operation, context)
        case Reject():
            return intake.reject(view, operation, context)
        case Release():
            return intake.release(view, operation, context)
        case NoAnswer():
            return notices.no_answer(view, operation, context)
        case ReleaseHeld():
            return hold.release_held(view, operation, context)
        case RejectHeld():
            return hold.reject_held(view, operation, context)
        case BeginGeneration():
            return intake.begin_generation(view, operation, context)
        case ResumeRuns():
            return resuming.resume_runs(view, operation, context)
        case Interrupt():
            return interrupting.interrupt(view, operation, context)
        case QueueMail():
            return outbox.queue_mail(view, operation, context)
        case SpawnChild():
            return spawning.spawn_child(view, operation, context)
        case MailDelivered():
            return outbox.mail_delivered(view, operation, context)
        case MailUndeliverable():
            return outbox.mail_undeliverable(view, operation, context)
        case Answer():
            return interventions.answer(view, operation, context)
        case Pause():
            return interventions.pause(view, operation, context)
        case Unpause():
            return interventions.unpause(view, operation, context)
        case Cancel():
            return cancelling.cancel(view, operation, context)
        case Signal():
            return cancelling.signal(view, operation, context)
        case ResumeDeployment():
            return service.resume(view, operation)
        case DrainDeployment():
            return service.drain(view, operation, context)
        case NoteDrain():
            return service.note(view, operation)
        case HoldDeployment():
            return service.hold(view, context)
        case LatchDeployment():
            return latching.latch(view, operation, context)
        case ResetDeployment():
            return latching.reset(view, operation)
        case Deploy():
            return deploying.deploy(view, operation, context)
        case ChangeGrants():
            return granting.change_grants(view, operation)
        case Tick():
            return ticking.tick(view, operation, context)
        case _:
            assert_never(operation)
