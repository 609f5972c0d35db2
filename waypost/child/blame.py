"""Why a workflow file can't be imported, in words for its author: which line of it, and what to write instead.

Loaded when that happens and not before: taking a traceback apart needs a good part of the standard library.
"""

import os
import sys
import traceback
from pathlib import Path

from waypost.child.errors import NotLoadable
from waypost.model.errors import WaypostError


def not_compilable(failure: SyntaxError | ValueError, path: str) -> NotLoadable:
    """A file that isn't Python. ValueError: null bytes, on some Pythons."""
    name = Path(path).name
    line = getattr(failure, "lineno", None)
    text = getattr(failure, "text", None)
    where = f"{name} line {line}" if line else name
    shown = f"\n    {text.strip()}" if text else ""
    reason = getattr(failure, "msg", None) or str(failure)
    return NotLoadable("syntax", path, f"{where}: {reason}{shown}", hint="correct the line")


def not_importable(failure: BaseException, path: str) -> NotLoadable:
    """A file that raised while it was imported, or one of those that it imports did."""
    name = Path(path).name
    if isinstance(failure, SyntaxError) and failure.filename is not None:
        where = f"{Path(failure.filename).name} line {failure.lineno}"
        shown = f"\n    {failure.text.strip()}" if failure.text else ""
        return NotLoadable("syntax", path, f"{where}: {failure.msg}{shown}", hint="correct the line")
    frames = [frame for frame in traceback.extract_tb(failure.__traceback__) if _is_users(frame.filename)]
    own = [frame for frame in frames if Path(frame.filename) == Path(path)]
    where, shown = f"{name}: ", ""
    for frame in (own or frames)[-1:]:
        where = f"{Path(frame.filename).name} line {frame.lineno}: "
        shown = f"\n    {frame.line}" if frame.line else ""
    code = "declaration" if isinstance(failure, WaypostError) else "import"
    reason = str(failure) if isinstance(failure, WaypostError) else f"{type(failure).__name__}: {failure}"
    hint = failure.hint if isinstance(failure, WaypostError) else ""
    if isinstance(failure, KeyError) and _raised_by(failure) is os.environ:
        hint = f"no variable of yours is there while a file is imported: name it in Workflow(…, env=[{failure}]) and "
        hint += "read it inside a step"
    if isinstance(failure, FileNotFoundError):
        hint = "a file that is read while this one is imported must be listed: Workflow(…, files=[…])"
    wanted = failure.name or "" if isinstance(failure, ModuleNotFoundError) else ""
    if wanted and not hint:
        package = wanted.partition(".")[0]
        hint = f"install what has {package} where Waypost is (`{sys.executable} -m pip install …`), or correct the line"
    return NotLoadable(code, path, f"{where}{reason}{shown}", hint=hint or "correct the line", wanted=wanted)


def _raised_by(failure: BaseException) -> object:
    """The object in whose method it was raised; None where there is none."""
    frames = [frame for frame, _ in traceback.walk_tb(failure.__traceback__)]
    return frames[-1].f_locals.get("self") if frames else None


def _is_users(filename: str) -> bool:
    return not filename.startswith("<") and Path(__file__).parents[1] not in Path(filename).parents
