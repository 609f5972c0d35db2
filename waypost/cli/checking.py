"""``waypost fsck``: what it says of each repository, as it finds it."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from substrate.checking.fsck import Looked
from substrate.upkeep.salvage import Salvaged
from waypost.cli import words
from waypost.cli.output import complain, err, out
from waypost.cli.place import told
from waypost.host.datadir.files import named
from waypost.host.exits import Exit
from waypost.host.reading.checking import Broken, Checked, Checks, Target, copy_out, look, targets
from waypost.host.reading.narrate import printable
from waypost.model.errors import WaypostError

_KEPT = 10_000
"""Findings of one repository that ``--json`` lists."""
_SHOWN = 200
"""Lost paths that are said; ``salvaged.json`` has all."""


def fsck(what: str | None, data: str | None, key: str | None, *, tip: bool, into: str | None, as_json: bool) -> Exit:
    """``waypost fsck``: OK where nothing is found, REFUSED where something is, UNSEEN where it couldn't look."""
    try:
        chosen = targets(Path.cwd(), told(data), what, key)
        if into is not None:
            return _salvage(chosen, Path(into), as_json=as_json)
        return _as_json(chosen, tip=tip) if as_json else _in_words(chosen, tip=tip)
    except WaypostError as error:
        complain(error.message, error.hint)
    except OSError as error:
        mend = (
            "check the path and who may read it"
            if into is None
            else "check it, or name another folder, on a disk with space"
        )
        complain(f"{error.filename or ''}: {error.strerror or error}", mend)
    return Exit.UNSEEN


def _in_words(chosen: tuple[Target, ...], *, tip: bool) -> Exit:
    total = 0
    for target in chosen:
        looked, count = Looked(), 0
        for broken in look(target, looked, tip=tip):
            count += 1
            out(*_words(target, broken))
        out(_summary(target, looked, count, tip=tip))
        total += count
    if not chosen:
        out("there is nothing to check yet")
    return Exit.REFUSED if total else Exit.OK


def _as_json(chosen: tuple[Target, ...], *, tip: bool) -> Exit:
    checked = tuple(_checked(target, tip=tip) for target in chosen)
    out(msgspec.json.encode(Checks(repositories=checked)).decode())
    return Exit.REFUSED if any(each.broken for each in checked) else Exit.OK


def _checked(target: Target, *, tip: bool) -> Checked:
    looked, found, more = Looked(), list[Broken](), 0
    for broken in look(target, looked, tip=tip):
        if len(found) < _KEPT:
            found.append(broken)
        else:
            more += 1
    return Checked(
        name=target.name,
        repository=looked.repository,
        commits=looked.commits,
        oldest=looked.oldest,
        broken=tuple(found),
        more=more,
    )


def _words(target: Target, broken: Broken) -> Iterator[str]:
    where = " ".join(filter(None, (f"commit {broken.commit[:12]}" if broken.commit else "", printable(broken.path))))
    yield f"{target.name}: {broken.rule}: {where}: {printable(broken.value)}"
    yield f"  the rule: {broken.says}"
    yield f"  to do: {broken.advice}"


def _summary(target: Target, looked: Looked, count: int, *, tip: bool) -> str:
    verdict = f"{count} finding{'s' if count > 1 else ''}" if count else "clean"
    if not looked.commits:
        return f"{target.name}: {verdict}: no commit could be read"
    if tip:
        files, runs = words.count(looked.counts.files, "file"), words.count(looked.counts.runs, "run")
        return f"{target.name}: {verdict}: the newest commit {looked.oldest[:12]}, {files}, {runs}"
    return f"{target.name}: {verdict}: {words.count(looked.commits, 'commit')}, from {looked.oldest[:12]} on"


def _salvage(chosen: tuple[Target, ...], into: Path, *, as_json: bool) -> Exit:
    """One repository into ``into``; of several, each into a folder of its name below it."""
    if len(chosen) != 1:
        into.mkdir(mode=0o700)
    complete = True
    for target in chosen:
        folder = into if len(chosen) == 1 else into / target.name
        with named(folder):
            made = copy_out(target, folder)
        complete = complete and not made.lost and not made.journals
        if as_json:
            out(msgspec.json.encode(made).decode())
        else:
            out(*_copied(target, folder, made))
            err(*_lost(made))
    return Exit.OK if complete else Exit.REFUSED


def _copied(target: Target, folder: Path, made: Salvaged) -> Iterator[str]:
    flush = f", flush {made.flush}" if made.flush else ""
    files, size, logs = words.count(made.files, "file"), words.count(made.bytes, "byte"), words.count(made.runs, "log")
    yield f"{target.name}: commit {made.head[:12]}{flush}: {files}, {size}, {logs}"
    yield f"  copied to {folder}; the repository was not touched"
    for name in made.journals:
        yield f"  journal {printable(name)} can't be read to its end; it is copied as it is"


def _lost(made: Salvaged) -> Iterator[str]:
    for each in made.lost[:_SHOWN]:
        yield f"  lost: {printable(each.path)}: {printable(each.why)}"
    if len(made.lost) > _SHOWN:
        yield f"  and {len(made.lost) - _SHOWN} more; salvaged.json lists all"
