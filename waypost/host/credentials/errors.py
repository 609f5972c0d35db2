"""What the host refuses about credentials, in types. None of them repeats a value."""

from waypost.host.errors import HostError


class BadCredentials(HostError):
    """``credentials.toml`` can't be used; nothing of it counts. ``line`` is 0 where it can't be told."""

    code = "credentials"

    def __init__(self, path: str, line: int, why: str, *, hint: str = "") -> None:
        at = f"{path}, line {line}" if line else path
        super().__init__(f"{at}: {why}", hint=hint or "correct the file; docs/credentials.md says what it may have")
        self.path, self.line, self.why = path, line, why
