"""Which file system a path lies on, and whether it keeps what it promises about locks and syncs.

Pure over the text of /proc/self/mountinfo (proc(5)); the caller reads it.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

REMOTE = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
})  # fmt: skip
"""Types whose locks or syncs are another machine's (or a hypervisor's) to keep."""

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """Where a path lies: mount point and type, as the kernel names them."""

    point: str
    kind: str

    @property
    def unsafe(self) -> bool:
        """Whether it is a network or FUSE file system."""
        return self.kind in REMOTE or self.kind == "fuse" or self.kind.startswith(("fuse.", "fuseblk"))


def mount_of(path: str, mountinfo: str) -> Mount | None:
    """The mount that an absolute path without links lies on; None when the text names none."""
    found: Mount | None = None
    parts = PurePosixPath(path).parts
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        try:
            point = _ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
            kind = fields[fields.index("-") + 1]
        except (IndexError, ValueError):
            continue  # a line that proc(5) doesn't describe tells nothing
        above = PurePosixPath(point).parts
        # Of equally long points the later line lies on top.
        if parts[: len(above)] == above and (found is None or len(above) >= len(PurePosixPath(found.point).parts)):
            found = Mount(point, kind)
    return found
