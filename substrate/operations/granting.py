"""What an operator grants a step, or takes back: one file, one commit, in the one order of the log.

What is in force is read from ``grants/`` when a repository is opened and kept in memory; only the operation here
changes it. A file in the form of the reference system, as an import once left it, grants nothing. One that can't be
read grants nothing either, and is a reason to begin no run: nobody guesses what it was to say.
"""

from substrate import layout
from substrate.errors import BadPath
from substrate.granting import ChangeGrants, GrantsChanged, InForce
from substrate.messages import Refused, Start
from substrate.operations.change import Change, Decided, Settled, View, plain
from substrate.runlog import Tree
from waypost.model import grants as model
from waypost.model import reference_grants
from waypost.model.code import decode
from waypost.model.declaration import Declared
from waypost.model.errors import Invalid
from waypost.model.events import Fault
from waypost.model.grants import NOTHING, RUN, STEPS, StepGrants

GRANTS_MISSING = "GrantMissing"
GRANTS_UNREADABLE = "GrantsUnreadable"
"""Types of the error with which a run fails that the barrier turns away for good."""
_HASHED = "%%"
"""How a name that is too long to be read back begins, as a file's."""


def in_force(tree: Tree) -> InForce:
    """What is granted, as the files say. Never raises for what is in them."""
    steps: dict[str, StepGrants] = {}
    unreadable: dict[str, str] = {}
    for name in tree.entries(layout.GRANTS):
        path = f"{layout.GRANTS}/{name}"
        try:
            step, found = read(path, tree.read(path) or b"")
        except (BadPath, Invalid) as bad:
            unreadable[path] = bad.message
            continue
        if found is not None:
            steps[step] = found
    return InForce(steps, unreadable)


def read(path: str, raw: bytes) -> tuple[str, StepGrants | None]:
    """A step and its grants; None for a file in the reference's form, which says nothing here.

    Raises BadPath, Invalid.
    """
    step = layout.place_of(path).name or ""
    if step.startswith(_HASHED):
        raise Invalid("a step whose name is too long to stand in a file's name can't be granted anything")
    return step, None if reference_grants.is_form(raw) else model.decode(raw)


def change_grants(view: View, operation: ChangeGrants) -> Decided:
    """Give, take back, or both. Value: what the step is granted after it. Refused as ``ChangeGrants`` says."""
    step, before = operation.step, view.granted
    declared = declared_now(view)
    mail_to = () if declared is None else declared.mail_to
    children = () if declared is None or step != RUN else child_names(declared)
    refused = _may_be_granted(operation, declared)
    if refused is not None:
        return refused
    old = before.steps.get(step, NOTHING)
    new = model.given(old, operation.give, mail_to, children)
    new = model.taken_back(new, operation.take, mail_to, children)
    if operation.declared:
        new = StepGrants(secrets=new.secrets)
    path = layout.step_grants_path(step)
    if new == old and path not in before.unreadable:
        return Settled(old)
    steps = {name: grants for name, grants in before.steps.items() if name != step}
    steps |= {} if new == NOTHING else {step: new}
    after = InForce(steps, {each: why for each, why in before.unreadable.items() if each != path})
    too_large = _too_large(step, new, after)
    if too_large is not None:
        return too_large
    there = step in before.steps or path in before.unreadable
    verb = "revoke from" if operation.give == NOTHING and not operation.declared else "grant to"
    return Change(
        author="supervisor",
        subject=f"{verb} {plain(step)}, by {plain(operation.by)}",
        puts={} if new == NOTHING else {path: model.encode(new)},
        deletes=(path,) if new == NOTHING and there else (),
        facts=(GrantsChanged(after),),
        value=new,
    )


def barred(granted: InForce, start: Start, deployment: str) -> Fault | None:
    """Why a run may not begin under what is in force, for good; None where it may."""
    if granted.unreadable:
        return Fault(type=GRANTS_UNREADABLE, message=f"what the steps may do can't be read: {granted.why_unreadable}")
    missing = model.missing(granted.taken, start.secrets) if start.secrets else ()
    if not missing:
        return None
    step, name = missing[0]
    where = deployment if step == RUN else f"{deployment} {step}"
    return Fault(
        type=GRANTS_MISSING,
        message=f"{model.lacking(missing)}; `waypost grants set {where} --secret {name}`, then send it as a new mail",
    )


def declared_now(view: View) -> Declared | None:
    """What the deployed workflow declares; None where none is deployed, or it can't be read."""
    raw = view.read(layout.DEPLOYED)
    try:
        return None if raw is None else decode(raw).declaration
    except Invalid:
        return None


def child_names(declared: Declared) -> tuple[str, ...]:
    """The child workflows that the code has, in the order of the file."""
    return tuple(each.name for each in declared.children or ())


def _may_be_granted(operation: ChangeGrants, declared: Declared | None) -> Refused | None:
    step, give = operation.step, operation.give
    if not step or layout.encode_name(step).startswith(_HASHED):
        why = "it has no name" if not step else "its name is too long for a file's"
        return Refused("step", f"step {step[:80]!r} can't be granted anything: {why}", "give it another name")
    if step == RUN:
        return None if declared is None else _children_known(give, declared)
    hint = "leave the step out: what is granted to the run holds for all of it"
    if give.mail or operation.declared:
        return Refused("mail", f"step {step[:80]!r} sends no mail: the run function does", hint)
    if give.children:
        return Refused("workflow", f"step {step[:80]!r} starts no child run: the run function does", hint)
    known = () if declared is None else tuple(each.name for each in declared.steps)
    if give != NOTHING and declared is not None and step not in known:
        shown = ", ".join(known) or "none"
        return Refused("step", f"the deployed workflow has no step {step[:80]!r}", f"its steps: {shown}")
    return None


def _children_known(give: StepGrants, declared: Declared) -> Refused | None:
    known = child_names(declared)
    strange = next((each for each in give.children or () if each not in known), None)
    if strange is None:
        return None
    why = f"the deployed workflow has no child workflow {strange[:80]!r}"
    return Refused("workflow", why, f"its child workflows: {', '.join(known) or 'none'}")


def _too_large(step: str, new: StepGrants, after: InForce) -> Refused | None:
    size = len(model.encode(new))
    if size > model.FILE:
        return Refused("too-large", f"the grants of {step} have {size} bytes; a step's may have {model.FILE}")
    if len(after.steps) > STEPS:
        return Refused("too-large", f"{len(after.steps)} steps with grants of their own; {STEPS} may have some")
    if len(after.raw) > model.SNAPSHOT:
        return Refused("too-large", f"all grants have {len(after.raw)} bytes; they may have {model.SNAPSHOT}")
    return None
