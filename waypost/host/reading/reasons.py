"""The answers of ``waypost why``: for a run, a mail, a deployment, or all of them, with and without a host."""

from msgspec.structs import replace

from substrate.messages import RunLine
from waypost.host.answers.records import KeptMail
from waypost.host.answers.why import DeploymentWhy, MailWhy, Why, Whys
from waypost.host.errors import NotOnHold
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.reading import deployment_why, explain, run_why
from waypost.host.reading.deployment_why import fields
from waypost.host.reading.queued import kept_mail, mail_name, named_on_hold, rejected_of
from waypost.host.reading.source import LIST, Source, locate, whole
from waypost.model.ids import RunId
from waypost.model.run import Run, ledger
from waypost.model.why import Sentence, command


def of_run(source: Source, text: str) -> Why:
    """Why a run isn't further. Raises NoSuchRun, AmbiguousRun."""
    situation, run = locate(source, text)
    told = explain.read(run, whole(source, situation.name, run))
    turn = run_why.waits_its_turn(told, situation)
    ahead = _ahead(source, situation.name, run) if turn else 0
    queued = None if told.lines else _queued(source, situation.name, run)
    answer = run_why.why(
        told,
        situation,
        ahead=ahead,
        queued="" if queued is None else queued.started,
        children=_children(source, situation.name, told.state),
    )
    return answer if queued is None else replace(answer, parent=queued.parent)


def of_deployment(source: Source, name: str) -> DeploymentWhy:
    """Why a deployment is as it is. Raises NoSuchDeployment."""
    known = {each.name: each for each in source.situations()}
    if name not in known:
        raise NoSuchDeployment(name, tuple(known))
    return deployment_why.told(known[name])


def of_all(source: Source) -> Whys:
    """Every deployment, those that need somebody first. One question, however many there are."""
    return deployment_why.all_told(source.situations())


def of_mail(source: Source, text: str) -> MailWhy:
    """Why a mail, such as ``expenses/3``, has no run. Raises NotOnHold, AmbiguousMail."""
    deployment, arrival = named_on_hold(source, text)
    held = (kept_mail(deployment, each) for each in source.on_hold(deployment, LIST))
    on_hold = next((each for each in held if each.arrival == arrival), None)
    if on_hold is not None:
        return _mail(on_hold, "hold", _on_hold(on_hold))
    rows, _ = rejected_of(source, deployment)
    gone = next((each for each in rows if each.arrival == arrival), None)
    if gone is None:
        raise NotOnHold(text)
    what = f"nothing: it was rejected ({gone.why})"
    then = "nothing follows; it stays readable"
    sentence = Sentence(waits_for=what, since=gone.since, then=then, command=command("queue", "rejected"))
    return _mail(gone, "rejected", sentence)


def _mail(mail: KeptMail, place: str, sentence: Sentence) -> MailWhy:
    return MailWhy(mail=mail.mail, deployment=mail.deployment, place=place, why=mail.why, **fields(sentence))


_HELD = {
    "id-clash": "it has the message id of mail {clash}, and other content",
    "poison": "each time that it was taken up, the host ended",
    "stale": "it was imported, and is older than what is remembered",
}


def _on_hold(mail: KeptMail) -> Sentence:
    why = _HELD.get(mail.why, mail.why).format(clash=mail.clash)
    return Sentence(
        waits_for=f"somebody to let it in, or to reject it: {why}",
        since=mail.since,
        then="let in, it is a mail like any other; rejected, it stays readable",
        command=command("queue", "release", mail.mail),
        alternative=command("queue", "reject", mail.mail),
        needed=True,
    )


def _ahead(source: Source, deployment: str, run: RunId) -> int:
    """How many other runs of a deployment are driven, among the newest."""
    return sum(line.state in {"running", "cancelling"} and line.run != run for line in source.runs(deployment, LIST))


def _children(source: Source, deployment: str, state: Run) -> dict[str, str]:
    """In what state the child runs of a run are, by their ids; of those among the newest, and those on hold."""
    known = ledger(state)
    if known is None or not known.children:
        return {}
    found: dict[str, str] = {line.run: _brief(line) for line in source.runs(deployment, LIST)}
    held = (
        (each.entry.run, command("why", mail_name(deployment, each.entry.arrival)))
        for each in source.on_hold(deployment, LIST)
    )
    return {**found, **{run: f"on hold: `{line}`" for run, line in held}}


def _brief(line: RunLine) -> str:
    return f"{line.state} ({line.waiting[0].kind})" if line.waiting and line.state != "queued" else line.state


def _queued(source: Source, deployment: str, run: RunId) -> RunLine | None:
    """What a list says of a run that hasn't begun: when its first mail was accepted, and whose child it is."""
    return next((line for line in source.runs(deployment, LIST) if line.run == run), None)
