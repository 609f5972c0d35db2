"""Why a deployment is as it is, with and without a host; and which of many needs somebody most. Pure.

A host says it in its supervisor's own sentence; of one that nobody runs the repository alone speaks.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, assert_never

from ipc.crowded import Crowd
from waypost.host.answers.records import Reason
from waypost.host.answers.top import TopRow
from waypost.host.answers.why import DeploymentWhy, Whys
from waypost.host.reading.explain import Situation
from waypost.host.reading.narrate import printable
from waypost.model.why import Sentence, command

NO_HOST = "no host"
"""The state of a deployment that nobody runs."""
_CALM = ("running", "dozing", "dormant")
"""States in which a deployment does what it is there for."""
LONG = 500
"""Characters of what a sentence says; the whole of a long reason is in the host's log."""


def sentence_of(situation: Situation) -> Sentence:
    """The sentence of a deployment."""
    if halted(situation):
        return _stopped(situation) if situation.stopped else _traced(situation)
    if situation.hosted and situation.why is not None:
        return situation.why if situation.crowd is None else _crowded(situation.why, situation.crowd)
    if situation.hosted:
        return Sentence(waits_for="its host to say how it is", then="it says so", since=situation.since)
    run = command("run", situation.file) if situation.file else command("run")
    name, left = situation.name, situation.left_out
    if left is not None:
        return Sentence(
            waits_for=f"somebody to mend why the host that runs here left it out: {left.why}",
            then="when it is mended, end that host (Ctrl-C): `waypost run` runs all; mail for it is kept meanwhile",
            since=situation.since,
            command=left.command,
            alternative=run,
            needed=True,
        )
    match situation.code or situation.state:
        case "unreadable" | "rolled-back" as code:
            return _shut(situation, code)
        case "held":
            what = "a host, and then somebody to let it go on, as it is held"
            then = f"`waypost resume {name}` lists what would go out, and lets it go on"
        case "draining":
            what = f"a host, which goes on draining it ({situation.reason})"
            then = f"it is held in the end; `waypost resume {name}` calls it off, too"
        case "crash-looping":
            what = f"a host, and then somebody to reset it ({situation.reason})"
            then = f"`waypost reset {name}` lets it have a process again, when the reason is mended"
        case _ if situation.beside:
            what = "a host that runs it, as the one that runs here doesn't"
            then = "started again without a file, it runs all that is deployed; end the one that runs first (Ctrl-C)"
        case _:
            what = "a host, as no host runs it"
            then = "it goes on where it was; mail that is sent meanwhile is kept, and taken in then"
    return Sentence(waits_for=what, then=then, since=situation.since, command=run, needed=True)


def threadless(crowd: Crowd) -> Sentence:
    """The sentence of what waits for a thread: which limit is reached, and what raises it."""
    reached, helps, line = _full(crowd)
    waits_for = f"a thread for its code to run in: {reached}"
    return Sentence(waits_for=waits_for, then=f"it goes on by itself when one is free; {helps}", command=line)


def _full(crowd: Crowd) -> tuple[str, str, str]:
    """The limit that is reached, what raises it, and the command for that, if it is one of ours."""
    counted = f"{crowd.count} of {crowd.most} processes and threads are there"
    match crowd.whose:
        case "user":
            line = command("run", "--processes", str(2 * crowd.most))
            return f"{counted} (its user's, of --processes or ulimit -u)", "end that host and let it have more", line
        case "service":
            return f"{counted} (of {crowd.group})", "allow that service more, by TasksMax= of systemd", ""
        case "machine":
            return f"{counted} (of this machine)", "allow it more, by sysctl kernel.threads-max", ""
        case _:
            assert_never(crowd.whose)


def _crowded(why: Sentence, crowd: Crowd) -> Sentence:
    """Whatever needs a thread waits for it; whether anything does isn't known here."""
    reached, helps, line = _full(crowd)
    more = f"what needs a new thread waits for one, as {reached}; {helps}"
    return replace(why, then=f"{why.then}; {more}", command=why.command or line)


def _shut(situation: Situation, code: str) -> Sentence:
    """No host will open its repository as it is."""
    name = situation.name
    what, verb = (
        ("to see to its repository", "fsck")
        if code == "unreadable"
        else ("to put its newer repository back, or to give up what is missing", "accept-rollback")
    )
    return Sentence(
        waits_for=f"somebody {what} ({situation.reason})",
        then="a host can start it again; mail for it is withheld meanwhile",
        command=command(verb, name),
        alternative=command("run"),
        needed=True,
    )


def _stopped(situation: Situation) -> Sentence:
    """Its supervisor can't know: a process that has been stopped tells nobody."""
    why = situation.why
    return Sentence(
        waits_for="somebody to let its process go on, which has been stopped (SIGSTOP)",
        then="it goes on where it was, and nothing is lost; mail is accepted meanwhile",
        until="" if why is None else why.until,
        command=f"kill -CONT {' '.join(map(str, situation.stopped))}",
        alternative=command("recycle", situation.name, "--reason", "stopped"),
        needed=True,
    )


def halted(situation: Situation) -> str:
    """What keeps its process from doing anything, from outside; empty where nothing does."""
    if situation.stopped:
        return "has been stopped"
    return "is held by a debugger" if situation.traced else ""


def _traced(situation: Situation) -> Sentence:
    """SIGCONT does nothing for it, and how its debugger lets it go on isn't ours to know."""
    pids, why = " ".join(map(str, situation.traced)), situation.why
    return Sentence(
        waits_for=f"the debugger that holds its process ({pids}) to let it go on",
        then="it goes on where it was, and mail is accepted meanwhile; a fresh process is held by nobody",
        until="" if why is None else why.until,
        command=command("recycle", situation.name, "--reason", "debugger"),
        needed=True,
    )


def fields(sentence: Sentence) -> dict[str, Any]:  # Any: the values of one record's fields
    """A sentence as the fields of a ``Reason``, safe to be shown."""
    return {
        "waits_for": printable(sentence.waits_for, LONG),
        "since": sentence.since,
        "until": sentence.until or None,
        "then": printable(sentence.then, LONG),
        "command": sentence.command,
        "alternative": sentence.alternative,
        "needed": sentence.needed,
    }


def told(situation: Situation) -> DeploymentWhy:
    """The answer for one deployment."""
    return DeploymentWhy(
        name=situation.name,
        state=situation.state if situation.hosted else situation.state or NO_HOST,
        code=situation.code,
        isolation=situation.isolation,
        exited=None if situation.state in _CALM else situation.exited,
        outgoing=None if situation.stuck is None else Reason(**fields(situation.stuck)),
        **fields(sentence_of(situation)),
    )


def all_told(situations: Iterable[Situation]) -> Whys:
    """The answer for all of them, those first that need somebody, then those that are on their way."""
    found = tuple(situations)
    rows = sorted(map(told, found), key=lambda each: (urgency(each), each.name))
    return Whys(hosted=any(each.hosted for each in found), deployments=tuple(rows))


def urgency(why: DeploymentWhy | TopRow) -> int:
    """0: nothing goes on until somebody acts; 1: mail is withheld, or can't leave; 2: in between; 3: all is well."""
    if why.needed:
        return 0
    if why.code or (isinstance(why, DeploymentWhy) and why.outgoing is not None):
        return 1
    return 3 if why.state in _CALM else 2


def blocks(situation: Situation) -> bool:
    """Whether nothing of it can go on until somebody acts: each of its runs waits on that before all else."""
    return situation.state != "running" and sentence_of(situation).needed
