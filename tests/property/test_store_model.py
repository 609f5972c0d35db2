"""A store against a dict: whatever is written, in whatever order it is flushed, sealed, killed and opened again."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from substrate.signing.keys import SigningKey
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.stores import files_of, first_files, fresh_store, fsck, put

KEY = SigningKey.generate()
LIMITS = Limits(seal_objects=60)
NAMES = st.sampled_from(["a", "b", "c", "a.b", "a-b", "a0"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
DATA = st.one_of(st.binary(max_size=40), st.integers(0, 3).map(lambda n: b"x" * 3000 * n))


def collides(files: dict[str, bytes], path: str) -> bool:
    """Whether a path would be a file where a directory is, or the other way round."""
    return any(other.startswith(f"{path}/") or path.startswith(f"{other}/") for other in files)


class StoreMachine(RuleBasedStateMachine):
    """Writes, flushes, seals, deaths and restarts in any order."""

    @initialize()
    def begin(self) -> None:
        """A new repository."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "r.git"
        self.store = fresh_store(self.path, KEY, limits=LIMITS)
        self.visible = first_files()
        self.durable = dict(self.visible)

    @rule(files=st.dictionaries(PATHS, DATA, max_size=4))
    def write(self, files: dict[str, bytes]) -> None:
        """One commit; paths that would collide are left out."""
        chosen: dict[str, bytes] = {}
        for path, data in files.items():
            if not collides(self.visible | chosen, path):
                chosen[path] = data
        put(self.store, chosen)
        self.visible |= chosen

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """A file, or the whole directory around it."""
        path = data.draw(st.sampled_from(sorted(self.visible)))
        if path in first_files():
            return
        above = path.rsplit("/", 1)[0]
        whole = "/" in path and data.draw(st.booleans())
        put(self.store, {}, deletes=(f"{above}/" if whole else path,))
        self.visible = {
            name: kept
            for name, kept in self.visible.items()
            if not (name.startswith(f"{above}/") if whole else name == path)
        }

    @rule()
    def flush(self) -> None:
        """All that is visible becomes durable."""
        self.store.flush()
        self.durable = dict(self.visible)

    @rule()
    def seal(self) -> None:
        """The same, and stock git sees it."""
        self.store.seal()
        self.durable = dict(self.visible)

    @rule()
    def die_and_recover(self) -> None:
        """What was flushed is there, what was only visible is not; a reader without a host sees the same."""
        self.store.abandon()
        shown = open_readonly(self.path, KEY.public)
        assert {path: shown.read(path) for path in self.durable} == self.durable
        self.store = Store.open(self.path, key=KEY, limits=LIMITS)
        self.visible = dict(self.durable)

    @rule()
    def restart(self) -> None:
        """A clean stop loses nothing."""
        self.store.close()
        self.durable = dict(self.visible)
        self.store = Store.open(self.path, key=KEY, limits=LIMITS)

    @invariant()
    def shows_what_was_written(self) -> None:
        """The visible tree is the dict, whatever came before."""
        if hasattr(self, "store"):
            assert files_of(self.store) == self.visible

    def teardown(self) -> None:
        """Every history that was made is sound for git."""
        if hasattr(self, "store"):
            self.store.close()
            assert fsck(self.path) == ""
            self.folder.cleanup()


StoreMachine.TestCase.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)
TestStore = StoreMachine.TestCase
