"""What new code is refused for that old code may go on with: a zone that isn't there, a schedule that never comes.

What is deployed runs: the zone database may have changed since, and that is the one schedule's trouble, which `waypost
schedule list` tells, and not its runs'. So a host that is started with the same file comes up.
"""

import time
from pathlib import Path

from substrate.errors import SubstrateError
from substrate.reader import Reader
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import BadWorkflow, HostError
from waypost.host.reading.offline import public_key
from waypost.model import declaration
from waypost.model.code import Deployed
from waypost.model.errors import Invalid
from waypost.model.ids import Deployment


def refuse_untimely(shown: str, declared: declaration.Declared) -> None:
    """Raises BadWorkflow: a zone is unknown here, a schedule never comes, or mail_to has a pattern."""
    from waypost.model.schedule import MOST, check  # it loads the calendar; few have schedules

    if pattern := next((one for one in declared.mail_to if "*" in one), ""):
        grant = f"`waypost grants set {declared.name} --mail '{pattern}'` lets it mail a whole domain"
        raise BadWorkflow(shown, f"{declared.name}: mail_to lists addresses, not {pattern!r}", hint=grant)
    schedules = declared.schedules or ()
    if len({each.id for each in schedules}) < len(schedules) or len(schedules) > MOST:
        raise BadWorkflow(shown, f"{declared.name} has more than {MOST} schedules, or two of one name")
    for each in schedules:
        try:
            check(each, time.time_ns() // 1_000_000)
        except Invalid as bad:
            where = f"{declared.name}: @cron({each.expression!r}, tz={each.tz!r})"
            raise BadWorkflow(shown, f"{where}: {bad.message}", hint=bad.hint) from None


def refuse_unsayable(shown: str, data: Path | None, name: Deployment) -> None:
    """A verb would take such a name for an option. What is there goes on, with new code too. Raises BadWorkflow."""
    if name.startswith("-") and not (data is not None and DataDir(data).repo(name).is_dir()):
        why = f"{name!r} can't name a new deployment: in a command it would be taken for an option"
        raise BadWorkflow(shown, why, hint="rename it in Workflow(name), so that it begins with one of a-z and 0-9")


def deployed_already(data: Path | None, name: Deployment, record: Deployed) -> bool:
    """Whether this very code is what the deployment runs in that data directory, as far as that can be read."""
    if data is None:
        return False
    here = DataDir(data)
    try:
        return here.repo(name).is_dir() and Reader.open(here.repo(name), public_key(here)).deployed() == record
    except (SubstrateError, HostError, OSError):
        return False  # what is wrong is said where it is opened
