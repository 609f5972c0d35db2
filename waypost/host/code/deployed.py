"""What is deployed in a data directory, read back from its repositories, and looked at as a file is that is to run."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from substrate.errors import SubstrateError
from substrate.reader import Reader
from substrate.signing.keys import PublicKey
from waypost.host.clock import read
from waypost.host.code.describe import ask, described, refuse_taken
from waypost.host.code.errors import CodeGone, NothingDeployed
from waypost.host.code.materialise import is_whole, materialise
from waypost.host.code.notes import noted
from waypost.host.datadir.directory import DataDir
from waypost.host.described import Described
from waypost.host.errors import BadWorkflow, HostError, Taken
from waypost.host.processes.isolation import NONE, Isolation
from waypost.host.processes.isolation_errors import NotIsolated
from waypost.host.reading import offline
from waypost.host.reading.explain import LeftOut
from waypost.host.reading.narrate import printable
from waypost.model.code import Deployed, tree_hash
from waypost.model.declaration import NotDescribed
from waypost.model.errors import WaypostError
from waypost.model.installed import present
from waypost.model.why import command

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Known:
    """What a repository says of its deployment; ``record`` is None where nothing was ever deployed."""

    address: str
    record: Deployed | None


@dataclass(frozen=True, slots=True)
class Here:
    """What is deployed in a data directory: what a host can run, and what it leaves out."""

    described: tuple[Described, ...]
    left_out: tuple[LeftOut, ...] = ()


def known(data: DataDir, key: PublicKey, asleep: Iterable[Described] = ()) -> dict[str, Known]:
    """Every deployment here whose repository can be read, by name; each is opened once, but those that sleep."""
    found = {str(each.spec.name): Known(each.spec.address, each.record) for each in asleep}
    for name in data.deployments():
        if name in found:
            continue
        with suppress(SubstrateError):  # what is wrong is said by the verbs that read, and by its supervisor
            reader = Reader.open(data.repo(name), key)
            facts = reader.facts()
            if facts.deployment == name:  # another one's, put in its place, has no say: it isn't run, either
                found[name] = Known(facts.address, reader.deployed())
    return found


def deployed_here(
    data: DataDir, *, timeout: float, environment: Mapping[str, str], isolation: Isolation = NONE
) -> Here:
    """Every deployment of a data directory on the code that is deployed, looked at as a file is that is run.

    One that sleeps isn't looked at (``notes``). One whose repository or code can't be read, doesn't load, is another
    one's or has another one's address is left out, and named in the log with why: it keeps no other from running.
    Raises NothingDeployed, NoDataDirectory; where none is left, what is wrong with the first: SubstrateError, CodeGone,
    BadWorkflow.
    """
    key = offline.public_key(data)
    asleep = noted(data, present(), read().wall) if data.sleeping("").parent.exists() else {}
    found: list[Described] = []
    left_out: list[LeftOut] = []
    failures: list[WaypostError] = []
    for name in data.deployments():
        if name in asleep:
            found.append(asleep[name])
            continue
        try:
            one = _read(data, key, name, timeout=timeout, environment=environment, isolation=isolation)
            if one is not None:
                refuse_taken(one, found)
                found.append(one)
        except (SubstrateError, CodeGone, BadWorkflow, Taken) as failure:
            hint = f" ({failure.hint})" if isinstance(failure, HostError) and failure.hint else ""
            why = failure.message.removeprefix(f"{name}: ")
            _log.warning("%s isn't run: %s%s", name, why, hint)
            failures.append(failure)
            left_out.append(LeftOut(name, printable(why), _helps(name, failure)))
    if not found:
        raise failures[0] if failures else NothingDeployed(str(data.path))
    return Here(tuple(found), tuple(left_out))


def _helps(name: str, failure: WaypostError) -> str:
    match failure:
        case BadWorkflow():
            return command("deploy", "FILE")
        case Taken():
            return command("backup", name, "FILE")
        case _:
            return command("fsck", name)


def keep_whole(data: DataDir, name: str, tree: str, key: PublicKey, isolation: Isolation) -> None:
    """See that the folder of a deployed tree is what its name says; else make it anew from the repository.

    As it was at the start: the user that the child becomes may come as far as it, and no further. Where that can't be
    done it is logged: a child that is started on anything else refuses it.
    """
    try:
        if not is_whole(data.code / tree):
            materialise(data.code, Reader.open(data.repo(name), key).code(tree))
        isolation.let_in(data.code / tree, data.code, data.path)
    except (SubstrateError, NotIsolated, OSError) as failure:
        _log.error("%s: the folder of its code can't be made anew: %s", name, failure)


def _read(
    data: DataDir, key: PublicKey, name: str, *, timeout: float, environment: Mapping[str, str], isolation: Isolation
) -> Described | None:
    """None where nothing was ever deployed."""
    reader = Reader.open(data.repo(name), key)
    record = reader.deployed()
    if record is None:
        return None
    files = reader.code(record.tree)
    if tree_hash(files) != record.tree:
        raise CodeGone(name, "its files aren't those that its record names")
    return _again(name, record, files, timeout=timeout, environment=environment, isolation=isolation)


def _again(
    name: str,
    record: Deployed,
    files: dict[str, bytes],
    *,
    timeout: float,
    environment: Mapping[str, str],
    isolation: Isolation,
) -> Described:
    bare = "/".join(filter(None, (record.root, *record.module.split("."))))
    entry = f"{bare}/__init__.py" if f"{bare}/__init__.py" in files else f"{bare}.py"
    answer = ask(name, files, entry, timeout=timeout, environment=environment, isolation=isolation)
    if isinstance(answer, NotDescribed):
        raise BadWorkflow(name, answer.error, hint=answer.hint)
    one = described(name, files, answer)
    if one.spec.name != name:
        raise CodeGone(name, f"it says that it is {one.spec.name!r}")
    return one
