"""All of a repository looked at before anything is made: what will be taken over, and what won't.

The same survey is what ``--dry-run`` shows and what the import is made from. In memory are a line for each run and for
each queue entry; logs and messages are read again when it is their turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import UNSET

from substrate import layout
from substrate.errors import BadPath
from substrate.reference import queue, runs
from substrate.reference.errors import Leaving, ManyAddresses, NotReference, Unreadable
from substrate.reference.queue import QueueFound
from substrate.reference.records import GRANTS, read_grants
from substrate.reference.runs import RunFound
from substrate.reference.source import Entry, Source
from waypost.model import grants as model
from waypost.model import reference_grants
from waypost.model.errors import Invalid
from waypost.model.grants import NOTHING, RUN, StepGrants

MAIN, EVENTS = "main", "events"
RUNS = 100_000
"""Runs of a repository at most."""

_SILENT = ".gitignore"


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is. ``runs`` in the order in which they began; ``messages``: where history still has a message."""

    source: Source = field(repr=False)
    commit: str
    """Of branch main, 40 hex digits."""
    runs: tuple[RunFound, ...]
    queue: QueueFound
    messages: Mapping[str, bytes] = field(repr=False)
    grants: Mapping[str, StepGrants]
    """By step: what of its grants means anything here."""
    leaving: Leaving = field(repr=False)


def survey(source: Source, address: str | None, steps: Mapping[str, Source]) -> Survey:
    """Look at everything. ``address``: whose queue is taken over, needed where there are several.

    Raises NotReference where this is no repository of a deployment there, ManyAddresses where ``address`` is needed.
    """
    main = source.branches.get(MAIN)
    if main is None:
        raise NotReference(source.path, "it has no branch main")
    leaving = Leaving()
    try:
        top = {each.name: each for each in source.entries(source.commit(main).tree)}
        found = _runs(source, top, leaving)
        queued, messages = _queue(source, address, found, leaving)
        grants = {step: _grants(step, repository, leaving) for step, repository in steps.items()}
    except Unreadable as bad:
        raise NotReference(source.path, bad.message) from bad
    for branch in sorted(source.branches.keys() - {MAIN, EVENTS}):
        leaving.add(f"{branch}:", "no other branch than main and events is read")
    kept = {step: found for step, found in grants.items() if found is not None and found != NOTHING}
    return Survey(source, main.hex(), found, queued, messages, kept, leaving)


def _runs(source: Source, top: Mapping[str, Entry], leaving: Leaving) -> tuple[RunFound, ...]:
    known = ("runs", "agent-state", _SILENT)
    if "state" in top or not any(name in top for name in known):
        raise NotReference(
            source.path,
            "its branch main holds no runs",
            hint="an agent-state repository is named beside the one with the runs, by --grants STEP=REPOSITORY",
        )
    for name, entry in top.items():
        if name == "agent-state" and entry.kind == "directory":
            for path, _ in source.files(entry.oid, "agent-state"):
                leaving.add(f"main:{path}", "an agent's conversation has no place here; nothing goes on from it")
        elif name not in known:
            leaving.add(f"main:{name}", "no deployment there has such a file")
    root = top.get("runs")
    if root is None:
        return ()
    entries = source.entries(root.oid)
    if root.kind != "directory" or len(entries) > RUNS:
        raise Unreadable("main:runs", f"it is no directory of at most {RUNS} runs")
    found = [run for entry in entries if (run := runs.look(source, entry, leaving)) is not None]
    return tuple(sorted(found, key=lambda run: (run.began, run.name)))


def _queue(
    source: Source, address: str | None, found: tuple[RunFound, ...], leaving: Leaving
) -> tuple[QueueFound, Mapping[str, bytes]]:
    tip = source.branches.get(EVENTS)
    tree = () if tip is None else source.entries(source.commit(tip).tree)
    root = next((each for each in tree if each.name == "addresses" and each.kind == "directory"), None)
    for each in tree:
        if each is not root and each.name != _SILENT:
            leaving.add(f"events:{each.name}", "no queue there has such a file")
    known = {} if root is None else queue.addresses(source, root.oid, leaving)
    chosen = _choose(source, address, known)
    for other in sorted(known.keys() - {chosen}):
        for path, file in source.files(known[other].oid, f"events:addresses/{known[other].name}"):
            if "/consumed/" not in path and not path.endswith("/watermark.json") and file.kind == "file":
                leaving.add(path, f"the mail is for {other}")
    if chosen is None or chosen not in known or tip is None:
        return QueueFound(address or ""), {}
    queued = queue.look(source, chosen, known[chosen], leaving)
    wanted = {each.entry.id for each in queued.consumed}.union(*(run.mails for run in found))
    return queued, queue.in_history(source, tip, known[chosen].name, wanted)


def _choose(source: Source, address: str | None, known: Mapping[str, Entry]) -> str | None:
    if address is None and len(known) > 1:
        raise ManyAddresses(source.path, sorted(known))
    if address is None or (address not in known and len(known) == 1):
        return next(iter(known), None)
    return address


def _grants(step: str, repository: Source, leaving: Leaving) -> StepGrants | None:
    """A step's grants, out of its agent-state repository; all else in that is left, each grant of another kind, too."""
    path, found = f"{step}:state/grants.json", None
    tip = repository.branches.get(MAIN)
    if tip is None:
        raise Unreadable(repository.path, "it has no branch main")
    for name, file in repository.files(repository.commit(tip).tree, ""):
        if name == "state/grants.json" and file.kind == "file":
            try:
                found = _meant(step, path, read_grants(path, repository.file(file.oid, GRANTS)), leaving)
            except Unreadable as bad:
                leaving.add(path, bad.why)
        elif name != _SILENT:
            leaving.add(f"{step}:{name}", "an agent's conversation has no place here; nothing goes on from it")
    if found is None:
        leaving.add(path, "the step has no grants that can be taken over")
    return found


def _meant(step: str, path: str, raw: bytes, leaving: Leaving) -> StepGrants:
    """What these grants mean here. Raises Unreadable."""
    try:
        found, others = reference_grants.read(raw)
        layout.place_of(layout.step_grants_path(step))
        model.decode(model.encode(found))
    except (Invalid, BadPath) as bad:
        raise Unreadable(path, bad.message) from bad
    for record in others:
        leaving.add(path, f"what this host knows nothing of, or the list denies: {record}")
    if found.mail is not UNSET and step != RUN:
        if found.mail:
            run = f"the run does (--grants {RUN}=REPOSITORY)"
            leaving.add(path, f"no step sends mail here, {run}: {', '.join(found.mail)}")
        found = model.granted(secrets=found.secrets, children=found.children)
    return found
