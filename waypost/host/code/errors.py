"""Why code can't be deployed, in types: each names the file, and what to do about it."""

from waypost.host.errors import BadWorkflow, HostError
from waypost.model.code import largest


class TooBig(BadWorkflow):
    """The tree is over a bound. ``sizes``: its files with their bytes, of which the five largest are named."""

    def __init__(self, file: str, why: str, sizes: tuple[tuple[str, int], ...]) -> None:
        named = "".join(f"\n    {size:>12,}  {path}" for path, size in largest(sizes))
        super().__init__(
            file,
            f"its code can't be deployed: {why}; the largest are{named}",
            hint="keep data elsewhere, or deploy the workflow's file instead of its whole folder",
        )
        self.sizes = sizes


class LooksSecret(BadWorkflow):
    """A file in the tree has a name as secrets have; what is deployed is in the history for ever."""

    def __init__(self, file: str, path: str, name: str, link: str = "") -> None:
        """``name``: how ``files=`` would list it; empty where it can't, as it lies beside the workflow's folder.

        ``link``: what it leads to, where that has such a name.
        """
        whose = f"{path} is a symbolic link to {link}, which" if link else path
        listed = f", or, if it is none, list it by name: Workflow(…, files=[{name!r}])" if name else ""
        super().__init__(
            file,
            f"{whose} looks like a secret, and what is deployed stays in the history",
            hint=f"take it out of the folder{listed}",
        )
        self.path = path


class LeavesTree(BadWorkflow):
    """A symbolic link in the tree leads out of it, or nowhere."""

    def __init__(self, file: str, path: str, target: str) -> None:
        super().__init__(
            file,
            f"{path} is a symbolic link to {target}, which is not in the tree of code",
            hint="put a copy in its place, or take it out",
        )
        self.path, self.target = path, target


class NotAFile(BadWorkflow):
    """Something in the tree is no regular file, can't be read, or has a name that can't be kept."""

    def __init__(self, file: str, path: str, why: str, *, hint: str = "take it out of the folder") -> None:
        super().__init__(file, f"{path} {why}", hint=hint)
        self.path, self.why = path, why


class NothingListed(BadWorkflow):
    """``files=`` lists what isn't there."""

    def __init__(self, file: str, listed: str) -> None:
        super().__init__(
            file,
            f"Workflow(…, files=[{listed!r}]): no such file lies beside it or below",
            hint="files= lists files, folders and patterns such as 'templates/*.html', from the workflow's own folder",
        )
        self.listed = listed


class NoEntry(BadWorkflow):
    """In a folder, not exactly one file has a workflow in it."""

    def __init__(self, folder: str, found: tuple[str, ...]) -> None:
        if found:
            super().__init__(
                folder,
                f"several files in it have a workflow: {', '.join(found)}",
                hint=f"name the one that is meant, such as {folder}/{found[0]}",
            )
        else:
            super().__init__(folder, "no Python file in it has a workflow", hint="write one: README.md begins with it")
        self.found = found


class HidesOurs(BadWorkflow):
    """A file or folder in the tree has the name of one of the host's own packages."""

    def __init__(self, file: str, shown: str, name: str) -> None:
        super().__init__(file, f"{shown} would hide the host's own {name}; please rename it", hint=f"rename {shown}")
        self.name = name


class NothingDeployed(HostError):
    """A host is to run what is deployed, and nothing is."""

    code = "usage"

    def __init__(self, data: str) -> None:
        super().__init__(f"{data}: nothing is deployed here", hint="name a file: `waypost run FILE`")


class CodeGone(HostError):
    """What a deployment's record names can't be read from its repository."""

    code = "data-directory"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"{name}: its deployed code can't be read: {why}",
            hint="`waypost fsck` says what is wrong with the repository; `waypost run FILE` deploys the code anew",
        )
