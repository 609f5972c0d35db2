"""Are the packages that this host is made of really its own? Their names are plain, and somebody's else may be, too."""

from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions

from waypost.host.errors import NotOurs

PACKAGES = ("actors", "ipc", "substrate", "waypost")
DISTRIBUTION = "waypost"


def check_own(owners: Mapping[str, Sequence[str]] | None = None) -> None:
    """See that each package comes from our distribution and no other. Raises NotOurs.

    ``owners``: distributions by package, as ``importlib.metadata.packages_distributions`` has them.
    """
    found = packages_distributions() if owners is None else owners
    for package in PACKAGES:
        # As sets: an editable install lists its distribution twice.
        distributions = set(found.get(package, ()))
        if distributions != {DISTRIBUTION}:
            raise NotOurs(package, tuple(sorted(distributions)))
