"""A run starts a child run: ChildSpawned and the mail that starts the child in one commit, or why it may not.

The mail is from the deployment itself, under an id that names the parent's call (``waypost.model.child_mail``); from
there on it goes the way of any mail, to a run that is always a new one. Whether a child may be started is decided here,
against the code that is deployed and what is granted at this very commit. What may not be leaves ChildRefused, so that
the workflow sees it; only a request that breaks the protocol is Refused and leaves nothing.
"""

import hashlib
from shlex import quote

import msgspec

from substrate.messages import Refused, SpawnChild
from substrate.operations.append import at_call, extend
from substrate.operations.buckets import consumed_at
from substrate.operations.change import Change, Context, Decided, Settled, View, changed, plain
from substrate.operations.granting import child_names, declared_now
from substrate.operations.intake import into_inbox, numbered
from substrate.operations.placing import Placed
from substrate.operations.take_up import depth_of
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import mail
from waypost.model import run as fold
from waypost.model.child_mail import Spawner, child_id, child_mail, input_line
from waypost.model.errors import Invalid
from waypost.model.grants import may_start
from waypost.model.ids import RunId, idempotency_key, message_key, run_id

_NAME = 200
"""Characters of a workflow's name that are kept."""


def spawn_child(view: View, operation: SpawnChild, context: Context) -> Decided:
    """Start the call's child run, or record why not. Value: None; the event tells.

    Refused as a child's append is, and with code ``call`` or ``input``.
    """
    found = at_call(view, operation.by, operation.run, operation.call)
    if isinstance(found, Refused):
        return found
    before, ledger = found
    if operation.call in ledger.children or _known(view, operation, context):
        return Settled()
    why = _forbidden(view, operation, ledger, context)
    if why:
        return _refused(view, operation, before, why, context)
    try:
        input_line(operation.input)
    except Invalid as bad:
        return Refused("input", bad.message)
    return _spawned(view, operation, before, ledger, context)


def _known(view: View, operation: SpawnChild, context: Context) -> bool:
    key = message_key(child_id(operation.run, operation.call).encode())
    return (
        view.arrival_of(key) is not None
        or consumed_at(view, key, context) is not None
        or view.threads.unsealed(key) is not None
    )


def _forbidden(view: View, operation: SpawnChild, ledger: fold.Ledger, context: Context) -> str:
    """Why it may not be started; empty where it may."""
    limits, name = context.limits, operation.workflow[:_NAME]
    declared = declared_now(view)
    if declared is not None and operation.workflow not in child_names(declared):
        return f"the deployed code has no child workflow {name!r}"
    if not may_start(view.granted.taken, operation.workflow):
        granted = f"waypost grants set {context.deployment} --workflow {quote(name)}"
        return f"no grant to start {name}; `{granted}` gives it"
    if len(operation.input) > limits.child_input:
        return f"its arguments have {len(operation.input)} bytes as JSON; at most {limits.child_input} are taken"
    if depth_of(ledger.started) >= limits.child_depth:
        return f"child runs may lie {limits.child_depth} deep, and this run is {depth_of(ledger.started)} deep"
    if len(ledger.children) >= limits.children:
        return f"a run may have {limits.children} child runs at a time"
    return ""


def _refused(view: View, operation: SpawnChild, before: Known, why: str, context: Context) -> Decided:
    event = ev.ChildRefused(call=operation.call, workflow=operation.workflow[:_NAME], reason=why)
    made = extend(view, operation.run, before, (event,), context)
    if isinstance(made, Refused):
        return made
    return changed((made,), f"refuse child {plain(operation.workflow)} at {operation.call} of {operation.run}")


def _spawned(
    view: View, operation: SpawnChild, before: Known, ledger: fold.Ledger, context: Context
) -> Change | Refused:
    run = run_id(view.state.run, context.random())
    event = ev.ChildSpawned(
        call=operation.call,
        child=run,
        workflow=operation.workflow,
        arguments=hashlib.sha256(operation.input).hexdigest(),
        seen=operation.seen,
    )
    made = extend(view, operation.run, before, (event,), context)
    if isinstance(made, Refused):
        return made
    queued = _queued(view, operation, run, ledger, context)
    return msgspec.structs.replace(
        queued,
        subject=f"spawn {run} for {operation.call} of {operation.run}",
        puts={**queued.puts, **made.puts},
        deletes=made.deletes,
        facts=(made.fact, *queued.facts),
        known={operation.run: made.known},
        value=None,
    )


def _queued(view: View, operation: SpawnChild, run: RunId, ledger: fold.Ledger, context: Context) -> Change:
    """The child's mail into the inbox. On whose behalf it is: whom the parent may answer, the child may, too."""
    by, origin = Spawner(operation.run, operation.call), ledger.started.origin
    raw = child_mail(
        address=context.address,
        workflow=operation.workflow,
        by=by,
        message_id=context.message_id(_seed(idempotency_key(context.repository, origin, operation.call))),
        date_ms=context.now.wall,
        data=operation.input,
    )
    gist = mail.scan(raw)
    sender = ledger.started.mail.sender
    told = msgspec.structs.replace(gist, id=child_id(*by).encode(), sender=sender, from_count=0)
    state = msgspec.structs.replace(view.state, run=view.state.run + 1)
    entry = numbered(told, Placed(run, starts=True, old=None), state, context)
    return into_inbox(entry, raw, gist, state, context)


def _seed(key: str) -> str:
    """Of the mail's own Message-ID; the call's key itself names no mail that leaves."""
    return hashlib.sha256(f"child\0{key}".encode()).hexdigest()
