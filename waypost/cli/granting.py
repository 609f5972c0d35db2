"""``waypost grants``: what a deployment's steps may do, shown and changed, with a host and without one."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from waypost.cli import words
from waypost.cli.client import Client
from waypost.cli.output import err, harmless, out
from waypost.cli.place import existing, plain
from waypost.cli.reading import either, give
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import NoHost, Usage
from waypost.host.exits import Exit
from waypost.host.reading.granted import (
    GrantsSet,
    GrantsShown,
    GrantsWanted,
    StepShown,
    change_alone,
    export,
    show_alone,
)
from waypost.model import grants as model
from waypost.model.errors import Invalid
from waypost.model.grants import NOTHING, RUN, StepGrants

HEADINGS = ("step", "mail", "secrets", "child workflows", "asks for")


def show(name: str, step: str | None, data: str | None, *, as_json: bool) -> Exit:
    """``waypost grants show DEPLOYMENT [STEP]``."""
    answer = read(existing(data), plain("the deployment", name))
    if step is not None:
        found = tuple(each for each in answer.steps if each.step == step)
        if not found:
            raise Usage(f"{answer.deployment} has no step {plain('the step', step)[:80]!r}")
        answer = msgspec.structs.replace(answer, steps=found)
    give(answer, _table(answer), as_json=as_json)
    if answer.unreadable:
        err(f"no run begins: {harmless(answer.unreadable)}")
    err(*lacking(answer))
    return Exit.LEFT if answer.unreadable or any(each.lacks for each in answer.steps) else Exit.OK


def change(  # noqa: PLR0913 - an option each
    name: str,
    step: str | None,
    data: str | None,
    *,
    mail: Sequence[str],
    secrets: Sequence[str],
    children: Sequence[str],
    give_more: bool,
    declared: bool = False,
    asked: bool = False,
    as_json: bool,
) -> Exit:
    """``waypost grants set`` and ``waypost grants revoke``."""
    where, name = existing(data), plain("the deployment", name)
    named = _named(mail, secrets, children)
    if asked:
        done = give_asked(where, name, step)
    elif named == NOTHING and not declared:
        raise Usage("nothing was named", hint="say --mail ADDRESS, --secret HANDLE or --workflow NAME")
    else:
        wanted = GrantsWanted(
            step=RUN if step is None else plain("the step", step),
            give=named if give_more else NOTHING,
            take=NOTHING if give_more else named,
            declared=declared,
        )
        done = (_changed(where, name, wanted),)
    for each in done:
        out(msgspec.json.encode(each).decode() if as_json else told(each))
    if not done and not as_json:
        out(f"{name}: nothing more is asked for than is granted")
    given = {handle for each in done for handle in each.grants.secrets} if asked else named.secrets
    err(*(unlisted(where, given, slips=True) if give_more else lacking(read(where, name))))
    return Exit.OK


def unlisted(where: DataDir, handles: Iterable[str], *, slips: bool = False) -> Iterator[str]:
    """Credentials that aren't listed, and keep every run of the deployment from beginning; ``slips``: as misspelt."""
    from waypost.cli.trusting import handles as listed

    wanted = set(handles)
    missing = sorted(wanted - listed(where)) if wanted else []
    if missing:
        yield f"not listed in credentials.toml: {harmless(', '.join(missing))}; a run fails at its start until it is"
        if slips:
            yield "  `waypost credentials list` shows what is, `waypost grants revoke` takes a slip back"


def export_to(name: str, folder: str, data: str | None) -> Exit:
    """``waypost grants export DEPLOYMENT DIR``: a folder for each step, as the reference system has it."""
    where, name = existing(data), plain("the deployment", name)
    written = export(where, name, Path(plain("the folder", folder)))
    out(*(harmless(str(path)) for path in written) if written else ("nothing is granted: nothing was written",))
    return Exit.OK


def read(where: DataDir, name: str) -> GrantsShown:
    """What is granted, from the host, or from the repository where none runs."""

    def online(client: Client) -> GrantsShown:
        return client.get(GrantsShown, "deployments", name, "grants")

    return either(where, online, lambda data: show_alone(data, name))


def give_asked(where: DataDir, name: str, step: str | None = None) -> tuple[GrantsSet, ...]:
    """Grant what the code asks for and lacks: to this step, or to all of them."""
    steps = (each for each in read(where, name).steps if each.lacks and step in {None, each.step})
    return tuple(
        _changed(where, name, GrantsWanted(step=each.step, give=model.granted(secrets=each.lacks))) for each in steps
    )


def introduced(answer: GrantsShown) -> Iterator[str]:
    """What is said where code is deployed: whom it may mail, and what it asks for."""
    run = next((each for each in answer.steps if each.step == RUN), None)
    mail = answer.declared if run is None or run.mail is None else run.mail
    if mail:
        yield f"may mail {_spelt(mail)}, and who writes to it"
    undeclared = set(answer.declared).difference(mail)
    if undeclared:
        yield f"is granted no mail to {_spelt(sorted(undeclared))}, which it declares"
    refused = () if run is None or run.children is None else set(answer.declared_children).difference(run.children)
    if refused:
        yield f"is granted no child runs of {harmless(', '.join(sorted(refused)))}, which it declares"
    yield from lacking(answer)


def lacking(answer: GrantsShown) -> Iterator[str]:
    """What is asked for and not granted, each with the command that grants it."""
    for each in answer.steps:
        where = "" if each.step == RUN else f" {each.step}"
        who = "the run" if each.step == RUN else f"step {each.step}"
        for handle in each.lacks:
            command = f"waypost grants set {answer.deployment}{where} --secret {handle}"
            yield f"a run fails at its start until {harmless(who)} is granted the secret {handle}: {harmless(command)}"


def _named(mail: Sequence[str], secrets: Sequence[str], children: Sequence[str]) -> StepGrants:
    try:
        return model.granted(
            mail=[plain("--mail", each) for each in mail] if mail else msgspec.UNSET,
            secrets=[plain("--secret", each) for each in secrets],
            children=[plain("--workflow", each) for each in children] if children else msgspec.UNSET,
        )
    except Invalid as bad:
        raise Usage(bad.message, hint=bad.hint) from None


def _changed(where: DataDir, name: str, wanted: GrantsWanted) -> GrantsSet:
    try:
        return Client(where.socket).post(GrantsSet, "deployments", name, "grants", body=msgspec.json.encode(wanted))
    except NoHost:
        return change_alone(where, name, wanted)


def told(done: GrantsSet) -> str:
    """What a step is granted now, in a line."""
    who = "the run" if done.step == RUN else f"step {done.step}"
    return f"{done.deployment}: {harmless(who)} is granted {_worded(done.step, done.grants)}"


def _worded(step: str, grants: StepGrants) -> str:
    parts = [f"secret {handle}" for handle in grants.secrets]
    parts += [f"mail to {_spelt((person,))}" for person in grants.mail or ()]
    parts += [f"child runs of {child}" for child in grants.children or ()]
    if grants.children == ():
        parts.append("no child run")
    if grants.mail == ():
        parts.append("mail to nobody but who writes to it")
    elif grants.mail is msgspec.UNSET and step == RUN:
        parts.append("mail as its workflow declares")
    return harmless(", ".join(parts)) or "nothing of its own"


def _spelt(people: Iterable[str]) -> str:
    """Addresses; one with other letters than ASCII's twice, as a Cyrillic o looks like a Latin one."""
    return harmless(", ".join(one if one.isascii() else f"{one} (spelt {ascii(one)[1:-1]})" for one in people))


def _table(answer: GrantsShown) -> Iterator[str]:
    yield from words.columns([HEADINGS, *(_row(each, answer) for each in answer.steps)])


def _row(each: StepShown, answer: GrantsShown) -> tuple[str, ...]:
    mail = each.mail
    if each.step == RUN and mail is None:
        shown = f"{_spelt(answer.declared)} (as declared)" if answer.declared else "-"
    else:
        shown = _spelt(mail or ()) or ("nobody" if mail == () else "-")
    children = ", ".join(each.children or ()) or ("none" if each.children == () else "-")
    if each.step == RUN and each.children is None and answer.declared_children:
        children = f"{', '.join(answer.declared_children)} (as declared)"
    asks = ", ".join(f"{handle}{' (not granted)' if handle in each.lacks else ''}" for handle in each.asks)
    return (each.step, shown, ", ".join(each.secrets) or "-", children, asks or "-")
