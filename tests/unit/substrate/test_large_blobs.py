"""Large blobs out of packs: the same bytes as by libgit2, from every pack, and never what isn't sound."""

import random
from pathlib import Path

import pytest

from substrate.errors import Damaged
from substrate.packs.large import LARGE, read_large
from substrate.packs.objects import Kind, object_id
from substrate.packs.sealed import SealedObjects
from substrate.signing.keys import SigningKey
from waypost.testing.stores import fresh_store, git, put

KEY = SigningKey.generate()
RANDOM = random.Random(7)
BLOBS = {
    "mail/1/00/0000000001.eml": RANDOM.randbytes(LARGE),
    "mail/1/00/0000000002.eml": RANDOM.randbytes(3 * LARGE + 17),
    "long.jsonl": b'{"seq":1,"type":"x"}\n' * 200_000,
    "zeros": bytes(LARGE + 1),
}
SMALL = b"s" * (LARGE - 1)


@pytest.fixture(name="repository", scope="module")
def _repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "r.git"
    store = fresh_store(path, KEY)
    for name, data in BLOBS.items():
        put(store, {name: data, "small": SMALL})
        store.seal()
    store.close()
    return path


def packs(repository: Path) -> str:
    return str(repository / "objects" / "pack")


@pytest.mark.parametrize("name", BLOBS)
def test_a_large_blob_is_read_whole_from_whichever_pack_has_it(repository: Path, name: str) -> None:
    """Stored as it is or compressed, in the first pack or the last."""
    oid = object_id(Kind.BLOB, BLOBS[name])
    assert read_large(packs(repository), oid, len(BLOBS[name])) == BLOBS[name]
    assert SealedObjects(str(repository / "objects")).file(name, oid) == BLOBS[name]


def test_what_is_not_there_or_of_another_size_is_not_found(repository: Path, tmp_path: Path) -> None:
    """Then libgit2 is asked, and says what is wrong."""
    data = BLOBS["zeros"]
    assert read_large(packs(repository), bytes(20), LARGE) is None
    assert read_large(packs(repository), b"\xff" * 20, LARGE) is None
    assert read_large(packs(repository), object_id(Kind.BLOB, data), len(data) - 1) is None
    assert read_large(packs(repository), object_id(Kind.BLOB, data), len(data) + 1) is None
    assert read_large(str(tmp_path / "nowhere"), object_id(Kind.BLOB, data), len(data)) is None


def test_a_pack_of_gits_own_making_is_read_too(repository: Path, tmp_path: Path) -> None:
    """With other compression, and what it has as a delta by libgit2."""
    clone = tmp_path / "clone.git"
    git(tmp_path, "clone", "--bare", "-q", f"file://{repository}", str(clone))
    git(clone, "repack", "-a", "-d", "-f", "-q")
    objects = SealedObjects(str(clone / "objects"))
    for name, data in BLOBS.items():
        assert objects.file(name, object_id(Kind.BLOB, data)) == data


@pytest.mark.parametrize("damage", ["flip", "cut", "index"])
def test_a_large_blob_that_is_damaged_is_never_handed_out(repository: Path, tmp_path: Path, damage: str) -> None:
    """A bit in its bytes, a pack that ends too early, an index that points elsewhere."""
    name = "mail/1/00/0000000002.eml"
    oid = object_id(Kind.BLOB, BLOBS[name])
    copy = tmp_path / "objects"
    for folder in ("pack", "info"):
        (copy / folder).mkdir(parents=True)
    for file in (repository / "objects" / "pack").iterdir():
        raw = bytearray(file.read_bytes())
        if file.suffix == ".pack" and BLOBS[name][:60] in raw:
            if damage == "flip":
                raw[raw.index(BLOBS[name][:60]) + 10_000] ^= 1
            elif damage == "cut":
                del raw[LARGE:]
        if file.suffix == ".idx" and oid in raw and damage == "index":
            count = int.from_bytes(raw[1028:1032])
            for at in range(count):
                raw[1032 + 24 * count + 4 * at : 1032 + 24 * count + 4 * at + 4] = (13).to_bytes(4)
        (copy / "pack" / file.name).write_bytes(raw)
    assert read_large(str(copy / "pack"), oid, len(BLOBS[name])) is None
    with pytest.raises(Damaged):
        SealedObjects(str(copy)).file(name, oid)


def test_small_blobs_are_left_to_libgit2(repository: Path) -> None:
    """They are read as before."""
    assert SealedObjects(str(repository / "objects")).file("small", object_id(Kind.BLOB, SMALL)) == SMALL
