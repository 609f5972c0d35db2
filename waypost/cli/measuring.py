"""``waypost metrics``: the page that Prometheus reads, for whoever collects it by hand or by a script."""

from waypost.cli.client import Client
from waypost.cli.output import out
from waypost.cli.place import existing
from waypost.host.exits import Exit


def metrics(data: str | None) -> Exit:
    """Print the page. Raises NoHost, Said, Unanswered."""
    out(Client(existing(data).socket).text("metrics").rstrip("\n"))
    return Exit.OK
