"""``waypost deploy FILE|DIR``: the code goes into the deployment's repository; its next process runs it."""

import os
import sys
from pathlib import Path

from waypost.cli.output import harmless, out
from waypost.cli.place import for_host
from waypost.host.exits import Exit
from waypost.model.limits import DEFAULT

_LISTED = 20


def deploy(place: str, data: str | None) -> Exit:
    """``waypost deploy FILE|DIR``. Raises BadWorkflow, HostRuns, DataDirectory."""
    from waypost.host.deploying import deploy_alone
    from waypost.host.describe import describe
    from waypost.host.isolation import Asked, choose

    path = Path(place)
    where = for_host(data, path)
    isolation = choose(Asked(), data=str(where), environment=os.environ)
    one = describe(path, timeout=DEFAULT.ready_deadline, environment=os.environ, data=where, isolation=isolation)
    new = deploy_alone(where, one, command=("waypost", *sys.argv[1:]))
    paths = sorted(one.files)
    size = sum(map(len, one.files.values()))
    out(
        f"{one.spec.name}: {'deployed' if new else 'deployed already'} as {one.record.tree[:12]}: "
        f"{len(paths):,} {'file' if len(paths) == 1 else 'files'}, {size:,} bytes",
        *(f"    {harmless(path)}" for path in paths[:_LISTED]),
        *([f"    … {len(paths) - _LISTED:,} more"] if len(paths) > _LISTED else []),
        f"next: `waypost run --data {where}` runs what is deployed there",
    )
    return Exit.OK
