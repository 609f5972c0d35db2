"""What is noted of a deployment that sleeps, so that the next start of a host needn't open it to know it.

``DATA/dormant/NAME.json``, one line of JSON with the fields of ``Sleeping``. It is never a second truth: it counts only
where the repository is as it says, the branch at the same commit and no journal beside it, so that nothing was written
since; where the same interpreter runs with the same packages; and where the clock isn't behind the time at which it was
written: what is to be done when was judged by a clock that has been set back, and a schedule would hold still until
then; and where no tick of its schedules is left out, as of one whose zone couldn't be read. Any other deployment is
opened, and its code looked at, as without a note; deleting them costs only that time.
"""

import logging
import os
from contextlib import suppress

import msgspec

from actors.messages import DeploymentSpec
from substrate.errors import SubstrateError
from substrate.files.folder import Folder
from waypost.host.datadir.directory import DataDir
from waypost.host.described import Described, Sleep
from waypost.model.code import Deployed
from waypost.model.declaration import Runs
from waypost.model.errors import Invalid
from waypost.model.event_parts import Milliseconds
from waypost.model.ids import RunId
from waypost.model.installed import Installed
from waypost.model.limits import MIB
from waypost.model.schedule import next_after

_log = logging.getLogger(__name__)
FORMAT = 2
_LARGEST = MIB


class Sleeping(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment as the host had it when it fell asleep. ``head``: the commit at which its branch stands.

    ``deadline``: when something is to be done of it, in Unix ms; None: when something comes. ``live``: its runs, as far
    as they are named. ``at``: when that was, in Unix ms.
    """

    format: int
    at: Milliseconds
    head: str
    deadline: Milliseconds | None
    spec: DeploymentSpec
    record: Deployed
    runs: Runs
    compiled: str
    live: tuple[str, ...] = ()


_notes = msgspec.json.Decoder(Sleeping)


def note(data: DataDir, one: Described, sleep: Sleep, wall: int) -> None:
    """Note that it sleeps, as of ``wall`` (Unix ms).

    What can't be noted is opened at the next start: that is logged, and no error.
    """
    path = data.sleeping(one.spec.name)
    aside = path.with_name(f".{path.name}")
    try:
        head = _at_rest(data, one.spec.name)
        if head is None:
            path.unlink(missing_ok=True)
            return
        sleeping = Sleeping(
            format=FORMAT,
            at=wall,
            head=head,
            deadline=sleep.deadline,
            spec=one.spec,
            record=one.record,
            runs=one.runs,
            compiled=one.compiled,
            live=sleep.live,
        )
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # Not synced: one that is torn, or older than its repository, doesn't count.
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(sleeping))
        aside.replace(path)
    except (OSError, SubstrateError) as failure:
        _log.warning("%s: that it sleeps can't be noted: %s", one.spec.name, failure)


def noted(data: DataDir, present: Installed, wall: int) -> dict[str, Described]:
    """The deployments that sleep, by name, as far as it is noted and still so at ``wall`` (Unix ms)."""
    found: dict[str, Described] = {}
    try:
        names = sorted(each.name for each in os.scandir(data.sleeping("").parent))
    except FileNotFoundError:
        return {}
    for file in names:
        name = file.removesuffix(".json")
        if name == file or file.startswith("."):
            continue
        with suppress(OSError, SubstrateError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            one = _read(data, name, present, wall)
            if one is not None:
                found[name] = one
    return found


def _read(data: DataDir, name: str, present: Installed, wall: int) -> Described | None:
    path = data.sleeping(name)
    if path.stat().st_size > _LARGEST:
        return None
    sleeping = _notes.decode(path.read_bytes())
    spec = sleeping.spec
    same = (spec.python, spec.waypost, spec.distributions) == (present.python, present.waypost, present.distributions)
    known = sleeping.format == FORMAT and spec.name == name and same and sleeping.at <= wall and _complete(sleeping)
    if not known or _at_rest(data, name) != sleeping.head:
        return None
    sleep = Sleep(sleeping.deadline, tuple(map(RunId, sleeping.live)))
    return Described(spec, sleeping.record, sleeping.runs, {}, sleeping.compiled, sleep)


def _complete(sleeping: Sleeping) -> bool:
    """Whether it is to wake for the next tick of each of its schedules, by the zones that there are now.

    One whose zone couldn't be read had none; and what mends that, the same release made whole, is no other package.
    """
    try:
        schedules = sleeping.record.declaration.schedules or ()
        ticks = [next_after(each, sleeping.at) for each in schedules]
    except Invalid:  # NoZone: whoever is opened says so
        return False
    return all(tick is None or (sleeping.deadline is not None and sleeping.deadline <= tick) for tick in ticks)


def _at_rest(data: DataDir, name: str) -> str | None:
    """The commit of its branch, where all that was written is on it. Raises OSError, SubstrateError."""
    folder = Folder(str(data.repo(name)))
    return None if folder.journal_numbers() else folder.read_ref()
