"""``waypost why [RUN|DEPLOYMENT|MAIL]``: a sentence, and the command to run next; with and without a host.

For people in 80 columns; a command is never broken, so that it can be pasted, and it names the data directory where the
question did.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from waypost.cli.client import Client
from waypost.cli.fitting import laid_out
from waypost.cli.output import harmless
from waypost.cli.place import existing, plain, run_named
from waypost.cli.reading import either, give
from waypost.cli.words import isolation, moment
from waypost.host.answers.records import ChildExit, Reason
from waypost.host.answers.top import Top
from waypost.host.answers.why import DeploymentWhy, MailWhy, Why, Whys
from waypost.host.datadir.directory import DataDir
from waypost.host.exits import Exit
from waypost.model.errors import WaypostError
from waypost.model.why import beside

WIDTH = 80
SHOWN = 20
"""Deployments of which each has its sentence; the others are counted."""


def why(what: str | None, data: str | None, *, as_json: bool) -> Exit:
    """``waypost why``."""
    where = existing(data)
    options = ("--data", data) if data else ()
    if what is None:
        every = either(where, lambda client: client.get(Whys, "why"), _offline_all)
        give(
            every,
            all_words(every, options, people=_for_people(where) if every.hosted and not as_json else ForPeople()),
            as_json=as_json,
        )
    elif what.startswith("run_"):
        run = run_named(what)
        one = either(where, lambda client: client.get(Why, "runs", run, "why"), lambda data: _offline_run(data, run))
        give(one, run_words(one, options), as_json=as_json)
    elif "/" in what or what.isdigit():
        name = plain("the mail", what)
        mail = either(
            where, lambda client: client.get(MailWhy, "queue", name, "why"), lambda data: _offline_mail(data, name)
        )
        give(mail, mail_words(mail, options), as_json=as_json)
    else:
        name = plain("the deployment", what)
        deployment = either(
            where,
            lambda client: client.get(DeploymentWhy, "deployments", name, "why"),
            lambda data: _offline_deployment(data, name),
        )
        give(deployment, deployment_words(deployment, options), as_json=as_json)
    return Exit.OK


@dataclass(frozen=True, slots=True)
class ForPeople:
    """What needs somebody in deployments that are as they should be, as their host counts it.

    ``asked``: runs that wait for a person's answer; None where nobody has counted them all. ``held``: paused runs, and
    mails on hold, that go on when somebody lets them.
    """

    asked: int | None = None
    held: int = 0


def _for_people(where: DataDir) -> ForPeople:
    try:
        rows = Client(where.socket).get(Top, "top").deployments
    except WaypostError:  # it is a line beside the answer, which is there
        return ForPeople()
    waiting = [row.waiting for row in rows if row.waiting is not None]
    asked = sum(each.get("approval", 0) for each in waiting)
    return ForPeople(
        asked=asked or (0 if len(waiting) == len(rows) else None),
        held=sum(each.get(kind, 0) for each in waiting for kind in ("code", "poison", "operator"))
        + sum(row.on_hold or 0 for row in rows),
    )


# --- in words --------------------------------------------------------------------------------------------------------


def run_words(answer: Why, options: tuple[str, ...] = ()) -> Iterator[str]:
    """A run: what it waits on, each in a sentence, then its deployment."""
    name = f" {harmless(answer.child)}" if answer.child else ""
    of = f"  child{name} of {answer.parent}" if answer.parent else ""
    yield f"{answer.run}  {answer.deployment}  {answer.state}{of}"
    for wait in answer.waiting or (answer,):
        yield from _sentence(wait, options)
    on = answer.on
    if on.state != "no host":  # which has been said: it is what the run waits for first
        yield from _wrapped(f"{on.name} is {_state(on)}" + (f", since {moment(on.since)}" if on.since else ""))
    yield from _where(on)


def deployment_words(answer: DeploymentWhy, options: tuple[str, ...] = ()) -> Iterator[str]:
    """A deployment."""
    yield f"{answer.name}  {_state(answer)}"
    yield from _sentence(answer, options)
    yield from _outgoing(answer, options)
    yield from _where(answer)


def mail_words(answer: MailWhy, options: tuple[str, ...] = ()) -> Iterator[str]:
    """A mail that no run has."""
    yield f"{answer.mail}  {'on hold' if answer.place == 'hold' else answer.place}"
    yield from _sentence(answer, options)


def all_words(answer: Whys, options: tuple[str, ...] = (), *, people: ForPeople = ForPeople()) -> Iterator[str]:
    """All deployments: a sentence of each that isn't as it should be, and how many are; then what needs somebody."""
    if not answer.hosted:
        yield "no host runs here" if answer.deployments else "no host runs here, and nothing is deployed"
    said = [each for each in answer.deployments if each.needed or each.code or each.outgoing or each.state not in _CALM]
    for each in said[:SHOWN]:
        yield f"{each.name}  {_state(each)}"
        yield from _sentence(each, options)
        yield from _outgoing(each, options)
    if len(said) > SHOWN:
        yield f"and {len(said) - SHOWN} more; `waypost why --json` has them all"
    calm = Counter(each.state for each in answer.deployments)
    for each in said:
        calm[each.state] -= 1
    counted = ", ".join(f"{number} {state}" for state, number in sorted(calm.items()) if number)
    if counted:
        yield from _wrapped(f"as it should be: {counted}; `waypost why DEPLOYMENT` says more of one")
    if people.held:
        what = (
            "run or mail is held until somebody lets it"
            if people.held == 1
            else "runs and mails are held until somebody lets them"
        )
        yield f"{people.held:,} {what} go on: `{harmless(beside('waypost queue hold', *options))}`"
    listed = harmless(beside("waypost approvals", *options))
    if people.asked:
        yield f"{people.asked:,} {'run asks' if people.asked == 1 else 'runs ask'} something of people: `{listed}`"
    elif people.asked is None and answer.deployments:
        yield f"what runs ask of people: `{listed}`"


_CALM = ("running", "dozing", "dormant")


def _sentence(reason: Reason, options: tuple[str, ...]) -> Iterator[str]:
    since = f", since {moment(reason.since)}" if reason.since else ""
    nothing = reason.waits_for.startswith("nothing")
    until = f", until {moment(reason.until)}" if reason.until else "" if nothing else ", with no deadline"
    yield from _wrapped(f"it waits for {reason.waits_for}{since}{until}; then {reason.then}")
    if reason.command:
        yield f"  next: {harmless(beside(reason.command, *options))}"
    if reason.alternative:
        yield f"    or: {harmless(beside(reason.alternative, *options))}"


def _outgoing(on: DeploymentWhy, options: tuple[str, ...]) -> Iterator[str]:
    if on.outgoing is not None:
        yield from _sentence(on.outgoing, options)


def _state(on: DeploymentWhy) -> str:
    return f"{on.state} ({on.code})" if on.code and on.code != on.state else on.state


def _where(on: DeploymentWhy) -> Iterator[str]:
    """How far its code is shut in, and how its last process ended: text of the workflow's own, so shown as harmless."""
    yield from _wrapped(isolation(on.isolation))
    if on.exited is not None:
        yield from _exited(on.exited)


def _exited(child: ChildExit) -> Iterator[str]:
    how = f"its last process, of generation {child.generation}: {child.why}, {moment(child.at)}"
    yield from _wrapped(how)
    if child.stderr:
        yield "  at last it wrote:"
        yield from (f"    {harmless(' '.join(line.splitlines()))}" for line in child.stderr)


def _wrapped(text: str) -> Iterable[str]:
    """Lines of at most 80 columns, but for a word that is longer."""
    return laid_out(" ".join(harmless(text).split()), WIDTH, 0, whole_words=True)


# --- without a host: the storage is imported only here ---------------------------------------------------------------


def _offline_run(data: DataDir, run: str) -> Why:
    from waypost.host.reading import offline, reasons

    return reasons.of_run(offline.Offline(data), run)


def _offline_deployment(data: DataDir, name: str) -> DeploymentWhy:
    from waypost.host.reading import offline, reasons

    return reasons.of_deployment(offline.Offline(data), name)


def _offline_mail(data: DataDir, mail: str) -> MailWhy:
    from waypost.host.reading import offline, reasons

    return reasons.of_mail(offline.Offline(data), mail)


def _offline_all(data: DataDir) -> Whys:
    from waypost.host.reading import offline, reasons

    return reasons.of_all(offline.Offline(data))
