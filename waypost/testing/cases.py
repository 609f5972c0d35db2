"""The hostile inputs that lie beside a developer's checkout, each with its right outcome.

Reading only: a row is handed out as it is written. Where the folder isn't there (a clone on its own), every function
answers with nothing, and pytest skips a test that is parametrised over nothing.
"""

import csv
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
MISSING = "the folder of hostile cases is not beside this checkout"


def available() -> bool:
    """Whether the folder is there; tests that need it as a whole skip with ``MISSING`` otherwise."""
    return FOLDER.is_dir()


def rows(name: str) -> list[dict[str, Any]]:  # Any: JSON lines hold lists and objects, tables hold text
    """The rows of a table, one dict a row by column: ``rows("cron.tsv")``, ``rows("frames.jsonl")``.

    Raises ValueError for another kind of file, FileNotFoundError for a misspelt name while the folder is there.
    """
    if not available():
        return []
    path = FOLDER / name
    match path.suffix:
        case ".jsonl":
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        case ".tsv":
            with path.open(encoding="utf-8", newline="") as table:
                return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
        case other:
            raise ValueError(f"{name}: cases are .jsonl or .tsv, not {other!r}")


def folder(name: str, suffix: str = ".eml") -> list[Path]:
    """The files of a folder of cases with this suffix, by name: ``folder("eml")``."""
    if not available():
        return []
    return sorted(path for path in (FOLDER / name).iterdir() if path.suffix == suffix)
