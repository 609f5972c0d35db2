"""The flush hash and its trailer: a format for ever, so it is tested against examples worked by other means."""

import hashlib
import subprocess

import pytest

from substrate.storage.flush import FlushHash, Trailer, flush_hash, head_message, parse_trailer

ZERO = "0" * 64


def test_flush_one_hashes_the_repository_id_and_what_was_written() -> None:
    """Spelled out byte by byte: id, then + path NUL length NUL bytes, paths sorted."""
    expected = hashlib.sha256(b"repo-1+a\x000\x00+b/c.json\x002\x00{}").hexdigest()
    assert flush_hash("repo-1", [{"b/c.json": b"{}", "a": b""}]) == expected


def test_a_shell_computes_the_same() -> None:
    """Whoever distrusts this code needs printf and sha256sum only."""
    script = rf"printf '{ZERO}-gone\0+x\0003\0abc' | sha256sum"
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert flush_hash(ZERO, [{"gone": None}, {"x": b"abc"}]) == printed.split()[0]


def test_commits_are_hashed_in_order_and_paths_sorted_within_each() -> None:
    """Order of commits is part of the history; order of a dict isn't."""
    one: dict[str, bytes | None] = {"a": b"1", "b": b"2"}
    assert flush_hash(ZERO, [one]) == flush_hash(ZERO, [dict(reversed(one.items()))])
    assert flush_hash(ZERO, [{"b": b"2"}, {"a": b"1"}]) != flush_hash(ZERO, [{"a": b"1"}, {"b": b"2"}])


def test_paths_sort_by_their_bytes() -> None:
    """``a-b`` < ``a.b`` < ``a/b``, as bytes; a tree's own order is another one."""
    made = FlushHash(ZERO)
    made.commit({"a/b": b"", "a.b": b"", "a-b": b""})
    assert made.hexdigest() == hashlib.sha256(ZERO.encode() + b"+a-b\x000\x00+a.b\x000\x00+a/b\x000\x00").hexdigest()


def test_an_empty_commit_leaves_the_hash_alone() -> None:
    """A commit that changes nothing adds nothing; the number of the flush still counts up."""
    assert flush_hash(ZERO, [{}]) == hashlib.sha256(ZERO.encode()).hexdigest()


def test_a_head_message_reads_back() -> None:
    """One line, an empty line, the trailer: git shows the first as subject."""
    message = head_message(b"append StepCompleted", Trailer(12, "ab" * 32))
    assert message == b"append StepCompleted\n\nFlush: 12 " + b"ab" * 32 + b"\n"
    assert parse_trailer(message) == Trailer(12, "ab" * 32)


@pytest.mark.parametrize(
    "message",
    [
        b"Flush: 1 " + b"ab" * 32,
        b"x\n\nFlush: 0 " + b"ab" * 32 + b"\n",
        b"x\n\nFlush: 01 " + b"ab" * 32 + b"\n",
        b"x\n\nFlush: 1 " + b"AB" * 32 + b"\n",
        b"x\n\n Flush: 1 " + b"ab" * 32 + b"\n",
        b"x\n\nFlush: 1 " + b"ab" * 32 + b"\n\n",
        b"x\n",
    ],
)
def test_only_the_exact_trailer_counts(message: bytes) -> None:
    """No second spelling, so that number and hash can't be read two ways."""
    assert parse_trailer(message) is None
