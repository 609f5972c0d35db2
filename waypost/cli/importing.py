"""``waypost import REPO``: what it says of an import, done or to be done."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from waypost.cli import words
from waypost.cli.output import err, out
from waypost.cli.place import plain, told
from waypost.host.datadir.directory import NAME, find
from waypost.host.errors import NoDataDirectory
from waypost.host.exits import Exit
from waypost.host.keeping.importing import Imported, Order, carry_out, dry_run
from waypost.host.reading.narrate import printable
from waypost.model.errors import Invalid
from waypost.model.ids import Deployment, deployment

_SHOWN = 200
"""Of a list, in words; ``--json`` has all of it."""


class Misused(Invalid):
    """An option that can't be what it is to be."""

    code = "usage"


def take_over(
    repository: str,
    *,
    name: str,
    address: str | None,
    grants: Sequence[str],
    data: str | None,
    preview: bool,
    as_json: bool,
) -> Exit:
    """Import, or say what an import would do. Exit LEFT where something isn't taken over."""
    order = Order(
        source=Path(repository),
        name=_name(name),
        address=None if address is None else plain("--address", address),
        steps=dict(map(_step, grants)),
        command=("waypost", "import", repository),
    )
    done = dry_run(order) if preview else carry_out(_where(data), order)
    if as_json:
        out(msgspec.json.encode(done).decode())
    else:
        out(*_words(done))
        err(*_left(done))
    return Exit.LEFT if done.left else Exit.OK


def _where(data: str | None) -> Path:
    """The data directory: as told, the nearest one upwards, or a new one here."""
    chosen = told(data)
    if chosen is not None:
        return Path(chosen)
    try:
        return find(Path.cwd(), None).path
    except NoDataDirectory:
        return Path.cwd() / NAME


def _name(text: str) -> Deployment:
    try:
        return deployment(text)
    except Invalid as bad:
        raise Misused(bad.message, hint="choose another --name, and call the workflow so") from None


def _step(text: str) -> tuple[str, Path]:
    step, found, path = plain("--grants", text).partition("=")
    if not (step and found and path):
        raise Misused(f"{text!r} names no step and its repository", hint="write --grants STEP=REPOSITORY")
    return step, Path(path)


def _words(done: Imported) -> Iterator[str]:
    would = "would be " if done.dry_run else ""
    yield f"{done.source}: {would}imported as {done.deployment}, {done.address}"
    for run in done.runs[:_SHOWN]:
        became = f"{run.run}  " if run.run else ""
        ended = "; it was live there, and is ended here" if run.was_live else ""
        yield f"  run    {became}{printable(run.name)}, {words.count(run.events, 'event')}{ended}"
    if len(done.runs) > _SHOWN:
        yield f"  and {len(done.runs) - _SHOWN} more runs; --json lists all"
    yield f"  mail   {done.queued} {'to be looked at' if done.dry_run else 'in the inbox'}, {_rest(done)}"
    for step in done.grants:
        yield f"  grants {printable(step)}"
    if done.dry_run:
        yield "nothing was written"
        return
    yield "no imported run goes on: their program isn't here; a reply to one starts a new run that names it"
    yield f"the deployment is held: start it by `waypost run FILE` with a workflow called {done.deployment!r}"
    yield f"at {done.address}, look at it, and let it go on with `waypost resume {done.deployment}`"


def _rest(done: Imported) -> str:
    if done.dry_run:
        return f"{done.filed} consumed"
    return f"{done.held} on hold, {done.filed} filed as consumed there"


def _left(done: Imported) -> Iterator[str]:
    if done.left:
        yield f"not taken over: {len(done.left) + done.more_left}"
    for thing in done.left[:_SHOWN]:
        yield f"  {printable(thing.path)}: {printable(thing.why)}"
    rest = len(done.left) - _SHOWN + done.more_left
    if rest > 0:
        yield f"  and {rest} more; --json lists {len(done.left)} of them"
