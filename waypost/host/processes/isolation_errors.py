"""What a host refuses of isolation: a mode that this machine doesn't have, and what would make it pointless."""

from waypost.host.errors import HostError


class NotIsolated(HostError):
    """The mode that was asked for can't be had here. Nothing was started."""

    code = "isolation"

    def __init__(self, mode: str, why: str) -> None:
        super().__init__(
            f"isolation {mode} can't be had: {why}",
            hint="mend that, or choose another --isolation; docs/isolation.md says what each protects against",
        )
        self.mode, self.why = mode, why


class OpensTooMuch(HostError):
    """A path can't be opened to workflow code without giving up what isolation is for."""

    code = "isolation"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} can't be opened to workflows: {why}", hint="name a folder that holds nothing else")
        self.path, self.why = path, why


class NoUser(HostError):
    """No user is left for a deployment's code to run as."""

    code = "isolation"

    def __init__(self, deployment: str, first: int, last: int) -> None:
        super().__init__(
            f"{deployment} can't be given a user of its own: {first} to {last} are all in use",
            hint="name a range that is Waypost's alone: --uids FIRST-LAST",
        )
        self.deployment, self.first, self.last = deployment, first, last
