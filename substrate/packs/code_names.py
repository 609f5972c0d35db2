"""How the names in a tree of code stand in a repository: as they are, but for what git or a shell would trip on.

``A-Z a-z 0-9 _ = + @ , . -`` stand for themselves; every other byte of a name's UTF-8, a ``-`` at its beginning, a
``.`` at its end, the ``.`` of one that begins with ``.git`` in any case, and the first letter of what Windows takes
for a device (``con.py``) stand as ``%xx``, as ``%`` itself does. So every name has one spelling and every spelling one
name, and ``git fsck --strict`` finds nothing, whatever is in a tree.
"""

import re

from substrate.errors import BadPath
from waypost.model.code import is_path

_PLAIN = re.compile(rb"[A-Za-z0-9_=+@,.\-]")
_DEVICE = re.compile(rb"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
_ESCAPED = re.compile(rb"%([0-9a-f]{2})")
_NAME = 255
"""Characters of one spelled name: what file systems allow in a clone."""
_PATH = 900
"""Characters of a spelled path: beside the tree's directory there is room for no more."""


def spell(path: str) -> str:
    """A path of a tree of code as it stands below the tree's directory. Raises BadPath for what is no such path."""
    if not is_path(path):
        raise BadPath(path, "not the path of a file in a tree of code")
    spelled = "/".join(map(_spell, path.split("/")))
    if len(spelled) > _PATH or any(len(part) > _NAME for part in spelled.split("/")):
        raise BadPath(path, f"spelled for git, it has over {_PATH} characters, or over {_NAME} in one name")
    return spelled


def unspell(spelled: str) -> str:
    """The inverse of ``spell``. Raises BadPath for any other spelling."""
    raw = _ESCAPED.sub(lambda found: bytes((int(found[1], 16),)), spelled.encode("utf-8", "replace"))
    path = raw.decode("utf-8", "replace")
    if spell(path) != spelled:
        raise BadPath(spelled, f"it should be spelled {spell(path)}")
    return path


def _spell(name: str) -> str:
    raw = name.encode()
    first = raw[:1] == b"-" or raw[:4].lower() == b".git" or _DEVICE.match(raw) is not None
    marked = {0} if first else set[int]()
    if raw.endswith(b"."):
        marked.add(len(raw) - 1)
    return "".join(
        chr(byte) if _PLAIN.match(raw[at : at + 1]) and at not in marked else f"%{byte:02x}"
        for at, byte in enumerate(raw)
    )
