"""Sentences of ``waypost why`` held against what they promise, and the commands in them against the command line.

``parse`` does with a command what the shell and our own parser do, up to the moment at which it would begin.
"""

import contextlib
import functools
import io
import re
import shlex
from typing import Any

import typer

from waypost.cli.command import app
from waypost.host.answers.records import Reason
from waypost.model.times import unstamp
from waypost.model.why import Sentence, parted

_QUOTED = re.compile(r"`(waypost [^`]*)`")
_command = functools.cache(typer.main.get_command)


def check(sentence: Sentence) -> None:
    """Fail where a sentence keeps something back. Raises AssertionError."""
    shown = repr(sentence)
    assert sentence.waits_for.strip(), shown
    assert sentence.then.strip(), shown
    assert sentence.waits_for.isprintable(), shown
    assert sentence.then.isprintable(), shown
    assert sentence.command or not (sentence.needed or sentence.alternative), f"nothing helps: {shown}"
    if sentence.since and sentence.until:
        assert unstamp(sentence.since) <= unstamp(sentence.until), shown
    for line in filter(None, (sentence.command, sentence.alternative)):
        parse(line)
    for line in _QUOTED.findall(f"{sentence.waits_for} {sentence.then}"):
        parse(line)


def check_reason(reason: Reason) -> None:
    """The same of an answer."""
    check(
        Sentence(
            waits_for=reason.waits_for,
            since=reason.since,
            until=reason.until or "",
            then=reason.then,
            command=reason.command,
            alternative=reason.alternative,
            needed=reason.needed,
        )
    )


@functools.lru_cache(maxsize=1024)
def parse(line: str) -> tuple[str, ...]:
    """The verb that a command line leads to, its options read. Raises AssertionError where it wouldn't be run."""
    words = shlex.split(parted(line)[0])
    if words[:2] == ["kill", "-CONT"] and all(word.isdigit() for word in words[2:]):
        return ()  # the one command that isn't ours
    assert words[0] == "waypost", line
    verbs: list[str] = []
    # Any: typer's classes come from one library or another, by its version.
    found: Any = _command(app)
    context: Any = None
    for word in words[1:]:
        if not hasattr(found, "get_command"):
            break
        context = found.make_context("waypost", [word], parent=context)
        found = found.get_command(context, word)
        assert found is not None, f"no verb: {line}"
        verbs.append(word)
    with contextlib.redirect_stderr(io.StringIO()):
        found.make_context(verbs[-1], words[1 + len(verbs) :], parent=context)
    return tuple(verbs)
