"""Where things lie in a deployment's repository (storage §1).

Names and paths only: this file opens nothing. Every function that makes a path has its inverse in ``place_of``, no
directory that it can make holds more than 256 entries (but those under ``code/``), and nothing that an outsider chose
(ids, addresses, step names) stands in a path as it came.
"""

import functools
import hashlib
import re
from collections.abc import Iterator

import msgspec

from substrate.errors import BadPath
from substrate.packs import code_names
from waypost.model.errors import Invalid
from waypost.model.ids import RunId, is_sha256, message_key, parse_run_id, run_ordinal

FORMAT = "format.json"
STATE = "state/deployment.json"
EPOCH = "state/epoch.json"
SIGNER = "state/signer.json"
DEPLOYED = "state/code.json"
QUEUE, RUNS, SEALED, MAIL, OUTBOX, CODE, GRANTS = "queue", "runs", "sealed", "mail", "outbox", "code", "grants"
SCHEDULES = "schedules"

_STATES = {STATE: "state", EPOCH: "epoch", SIGNER: "signer", DEPLOYED: "deployed"}

FAN = 64
"""Entries of a radix directory, events of a tail, events of a segment."""

_SEGMENT_ROOTS = 256
_RUNS_AT_WORK = 1024
_NAME_LIMIT = 100
_RADIX = re.compile(r"([1-9][0-9]?)((?:/[0-6][0-9])+)\Z")
_NUMBER = re.compile(r"(?:[0-9]{10}|[1-9][0-9]{10,17})\Z")
_COUNT = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")
_PLAIN = re.compile(r"[a-z0-9_]\Z")


# --- pieces --------------------------------------------------------------------------------------------------------


def radix(ordinal: int) -> str:
    """The directory of an ordinal: its leaf (ordinal // 64) in base 64, digits as 00 to 63 behind their count.

    ``radix(0)`` is ``1/00``, ``radix(64 * 489)`` is ``2/07/41``; the count in front lets the depth grow for ever.
    """
    if ordinal < 0:
        raise BadPath(str(ordinal), "ordinals start at 0")
    leaf = ordinal // FAN
    digits = [leaf % FAN]
    while leaf := leaf // FAN:
        digits.append(leaf % FAN)
    return f"{len(digits)}/" + "/".join(f"{digit:02d}" for digit in reversed(digits))


def unradix(directory: str) -> range:
    """The ordinals that lie in a radix directory. Raises BadPath where ``radix`` would not have written it."""
    match = _RADIX.match(directory)
    digits = [int(digit) for digit in match[2][1:].split("/")] if match else []
    leaf = 0
    for digit in digits:
        leaf = leaf * FAN + digit
    first = leaf * FAN
    if not digits or radix(first) != directory:
        raise BadPath(directory, "not a radix directory such as 2/07/41")
    return range(first, first + FAN)


def number(ordinal: int) -> str:
    """An ordinal or seq as file names carry it: ten digits at least, so that names sort as numbers."""
    return f"{ordinal:010d}"


def parse_number(text: str) -> int:
    """The inverse of ``number``; other spellings of the same number (``1_0``, `` 1``) are refused."""
    if not _NUMBER.match(text):
        raise BadPath(text, "not a number of ten digits or more")
    return int(text)


def encode_name(name: str) -> str:
    """A name that a person chose (step, schedule), as one path component.

    Lowercase letters, digits and ``_`` stand for themselves, every other byte as ``%xx``: so no two names collide on a
    disk that ignores case, and none is special to git, a shell or Windows. Over 100 characters it becomes ``%%`` and a
    SHA-256; ``decode_name`` can't undo that and says so. Empty names are refused with BadPath.
    """
    if not name:
        raise BadPath(name, "a name can't be empty")
    raw = name.encode("utf-8", "surrogateescape")
    encoded = "".join(chr(byte) if _PLAIN.match(chr(byte)) else f"%{byte:02x}" for byte in raw)
    return encoded if len(encoded) <= _NAME_LIMIT else "%%" + hashlib.sha256(raw).hexdigest()


def decode_name(component: str) -> str:
    """The inverse of ``encode_name`` for names that were short enough. Raises BadPath."""
    pieces = re.findall(r"%[0-9a-f]{2}|[a-z0-9_]", component)
    name = b"".join(bytes([int(piece[1:], 16)]) if piece[0] == "%" else piece.encode() for piece in pieces)
    text = name.decode("utf-8", "surrogateescape")
    if not text or encode_name(text) != component:
        raise BadPath(component, "not an encoded name")
    return text


def address_key(address: str) -> str:
    """How an address stands in a path: SHA-256 (hex) of its bytes."""
    return message_key(address.encode("utf-8", "surrogateescape"))


def _sha256(text: str) -> str:
    if not is_sha256(text):
        raise BadPath(text, "not a SHA-256 in hex")
    return text


# --- runs ----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=_RUNS_AT_WORK)
def run_dir(run: RunId) -> str:
    """The directory of a live run."""
    return f"{RUNS}/{radix(run_ordinal(run))}/{run}"


def sealed_dir(run: RunId) -> str:
    """The directory of a finished run that has been sealed."""
    return f"{SEALED}/{radix(run_ordinal(run))}/{run}"


def events_dir(run: RunId) -> str:
    """The newest events of a live run, at most 64."""
    return f"{run_dir(run)}/events"


def event_path(run: RunId, seq: int) -> str:
    """One event of a live run's tail."""
    return f"{events_dir(run)}/{number(seq)}.json"


def segments_dir(run: RunId) -> str:
    """The folded events of a live run."""
    return f"{run_dir(run)}/segments"


def segment_path(run: RunId, first: int) -> str:
    """The file of the 64 events from ``first`` (1, 65, 129, …). Room for 67 million events of a run."""
    index, rest = divmod(first - 1, FAN)
    top, low = divmod(index, FAN * FAN)
    if rest or first < 1 or top >= _SEGMENT_ROOTS:
        raise BadPath(str(first), "segments start at 1, 65, 129, … and end at 67 million")
    return f"{segments_dir(run)}/{top:02d}/{low // FAN:02d}/{number(first)}.jsonl"


def blobs_dir(run: RunId) -> str:
    """The values over the inline limit of a live run."""
    return f"{run_dir(run)}/blobs"


def blob_path(run: RunId, sha256: str) -> str:
    """A value over the inline limit, of a live run."""
    return f"{blobs_dir(run)}/{_sha256(sha256)[:2]}/{sha256[2:4]}/{sha256}"


def grants_path(run: RunId) -> str:
    """What a run may do; committed with its RunStarted."""
    return f"{run_dir(run)}/grants.json"


def sealed_log_path(run: RunId) -> str:
    """A finished run's whole log, one event a line."""
    return f"{sealed_dir(run)}/events.jsonl"


def sealed_grants_path(run: RunId) -> str:
    """A finished run's grants: the genesis of its chain is computed from their bytes, and RunStarted names them."""
    return f"{sealed_dir(run)}/grants.json"


def sealed_blob_path(run: RunId, sha256: str) -> str:
    """A value over the inline limit, of a finished run."""
    return f"{sealed_dir(run)}/blobs/{_sha256(sha256)[:2]}/{sha256[2:4]}/{sha256}"


# --- the queue, mail, the outbox -----------------------------------------------------------------------------------


def queue_dir(address: str, state: str) -> str:
    """The root of one state (``inbox``, ``processing``, ``hold``, ``consumed``) of an address's queue."""
    return f"{QUEUE}/{address_key(address)}/{state}"


def inbox_path(address: str, arrival: int, key: str) -> str:
    """An entry that waits."""
    return f"{queue_dir(address, 'inbox')}/{radix(arrival)}/{number(arrival)}-{_sha256(key)}.json"


def processing_path(address: str, arrival: int, key: str, attempt: int) -> str:
    """An entry that is claimed; the attempt is in its name and so in the commit that claims it."""
    return f"{queue_dir(address, 'processing')}/{radix(arrival)}/{number(arrival)}-{_sha256(key)}.{attempt}.json"


def hold_path(address: str, arrival: int, key: str) -> str:
    """An entry that an operator must look at."""
    return f"{queue_dir(address, 'hold')}/{radix(arrival)}/{number(arrival)}-{_sha256(key)}.json"


def bucket_dir(address: str, bucket: int) -> str:
    """The directory of a bucket of consumed entries; it is dropped whole, so it is a radix leaf of its own."""
    return f"{queue_dir(address, 'consumed')}/{radix(bucket * FAN)}"


def consumed_path(address: str, bucket: int, key: str) -> str:
    """A consumed entry, for as long as its id must be refused."""
    return f"{bucket_dir(address, bucket)}/{_sha256(key)[:2]}/{key}.json"


def watermark_path(address: str) -> str:
    """Which buckets are dropped."""
    return f"{QUEUE}/{address_key(address)}/watermark.json"


def mail_path(arrival: int) -> str:
    """The raw message, stored once."""
    return f"{MAIL}/{radix(arrival)}/{number(arrival)}.eml"


def outbox_path(ordinal: int, key: str) -> str:
    """A mail that is to go out."""
    return f"{OUTBOX}/{radix(ordinal)}/{number(ordinal)}-{_sha256(key)}.json"


def step_grants_path(step: str) -> str:
    """A step's grants."""
    return f"{GRANTS}/{encode_name(step)}.json"


def schedule_path(schedule: str) -> str:
    """A cron schedule."""
    return f"{SCHEDULES}/{encode_name(schedule)}.json"


def code_dir(tree: str) -> str:
    """A tree of code, by its hash."""
    return f"{CODE}/{_sha256(tree)[:2]}/{tree}"


def code_path(tree: str, path: str) -> str:
    """A file of a tree of code. Raises BadPath for what can't be a path in one."""
    return f"{code_dir(tree)}/{code_names.spell(path)}"


# --- the inverse ---------------------------------------------------------------------------------------------------


class Place(msgspec.Struct, frozen=True):
    """What lies at a path: its kind, and the names and numbers in it that its kind has.

    ``kind``: format, state, epoch, signer, deployed, event, segment, blob, grants, sealed-log, sealed-grants,
    sealed-blob, inbox, processing, hold, consumed, watermark, mail, outbox, step-grants, schedule or code. ``address``
    is the address's key, ``key`` the message's, or a tree's of code, ``number`` the seq, first seq, arrival, ordinal or
    bucket, ``attempt`` that of a claim, ``name`` the decoded step or schedule (still encoded where it was too long to
    decode), or a file's path in its tree of code.
    """

    kind: str
    run: RunId | None = None
    number: int | None = None
    key: str | None = None
    address: str | None = None
    attempt: int | None = None
    name: str | None = None


def place_of(path: str) -> Place:  # noqa: PLR0911 - one return per root directory reads best
    """Read a path of this layout. Raises BadPath for any other, also for another spelling of one that exists."""
    parts = path.split("/")
    match parts:
        case ["format.json"]:
            return Place("format")
        case ["state", _] if path in _STATES:
            return Place(_STATES[path])
        case ["grants" | "schedules" as root, file]:
            stem = _strip(file, ".json")
            name = stem if stem.startswith("%%") and is_sha256(stem[2:]) else decode_name(stem)
            return Place("schedule" if root == "schedules" else "step-grants", name=name)
        case ["code", hh, tree, _, *_] if tree[:2] == hh and is_sha256(tree):
            return Place("code", key=tree, name=code_names.unspell(path[len(code_dir(tree)) + 1 :]))
        case ["queue", address, "watermark.json"] if is_sha256(address):
            return Place("watermark", address=address)
        case ["queue", address, state, *rest] if is_sha256(address):
            return _queued(address, state, rest)
        case ["runs" | "sealed" as root, *rest]:
            return _of_run(path, root, rest)
        case ["mail", *directory, file]:
            ordinal = parse_number(_strip(file, ".eml"))
            return _at(directory, ordinal, Place("mail", number=ordinal))
        case ["outbox", *directory, file]:
            ordinal, key = _numbered(_strip(file, ".json"))
            return _at(directory, ordinal, Place("outbox", number=ordinal, key=key))
        case _:
            raise BadPath(path, "no file of this layout lies here")


def ancestors(path: str) -> Iterator[str]:
    """The directories above a path, outermost first."""
    cut = path.find("/")
    while cut != -1:
        yield path[:cut]
        cut = path.find("/", cut + 1)


def _queued(address: str, state: str, rest: list[str]) -> Place:
    match state, rest:
        case (("inbox" | "hold"), [*directory, file]):
            arrival, key = _numbered(_strip(file, ".json"))
            return _at(directory, arrival, Place(state, number=arrival, key=key, address=address))
        case "processing", [*directory, file]:
            stem, _, attempt = _strip(file, ".json").partition(".")
            if not _COUNT.match(attempt):
                raise BadPath(file, "the attempt is missing or no number")
            arrival, key = _numbered(stem)
            place = Place(state, number=arrival, key=key, address=address, attempt=int(attempt))
            return _at(directory, arrival, place)
        case "consumed", [*directory, hh, file]:
            key = _sha256(_strip(file, ".json"))
            if key[:2] != hh:
                raise BadPath(file, "filed under the wrong two digits")
            bucket = unradix("/".join(directory)).start // FAN
            return Place(state, number=bucket, key=key, address=address)
        case _:
            raise BadPath("/".join((state, *rest)), "no state of the queue has such a file")


def _of_run(path: str, root: str, rest: list[str]) -> Place:  # noqa: C901 - a table
    at = next((i for i, part in enumerate(rest) if part.startswith("run_")), None)
    if at is None:
        raise BadPath(path, "no run id in it")
    try:
        run = parse_run_id(rest[at])
    except Invalid as bad:
        raise BadPath(path, bad.message) from None
    match root, rest[at + 1 :]:
        case "runs", ["grants.json"]:
            place, made = Place("grants", run=run), grants_path(run)
        case "runs", ["events", file]:
            seq = parse_number(_strip(file, ".json"))
            place, made = Place("event", run=run, number=seq), event_path(run, seq)
        case "runs", ["segments", _, _, file]:
            first = parse_number(_strip(file, ".jsonl"))
            place, made = Place("segment", run=run, number=first), segment_path(run, first)
        case "runs", ["blobs", _, _, sha256]:
            place, made = Place("blob", run=run, key=sha256), blob_path(run, sha256)
        case "sealed", ["events.jsonl"]:
            place, made = Place("sealed-log", run=run), sealed_log_path(run)
        case "sealed", ["grants.json"]:
            place, made = Place("sealed-grants", run=run), sealed_grants_path(run)
        case "sealed", ["blobs", _, _, sha256]:
            place, made = Place("sealed-blob", run=run, key=sha256), sealed_blob_path(run, sha256)
        case _:
            raise BadPath(path, "a run has no such file")
    if made != path:
        raise BadPath(path, f"it should lie at {made}")
    return place


def _at(directory: list[str], ordinal: int, place: Place) -> Place:
    if "/".join(directory) != radix(ordinal):
        raise BadPath("/".join(directory), f"ordinal {ordinal} lies in {radix(ordinal)}")
    return place


def _strip(file: str, suffix: str) -> str:
    if not file.endswith(suffix):
        raise BadPath(file, f"expected a name that ends with {suffix}")
    return file[: -len(suffix)]


def _numbered(stem: str) -> tuple[int, str]:
    ordinal, _, key = stem.partition("-")
    return parse_number(ordinal), _sha256(key)
