"""The code that runs from now on: a tree by its hash, and the record that names it, in one commit.

A tree that is there is named again, not written again; the same record once more is no commit at all. The schedules
that the code declares begin with this commit, and those that it no longer declares go with it (``ticking``).
"""

from substrate import layout
from substrate.errors import BadPath
from substrate.messages import Deploy, Refused
from substrate.operations.change import Change, Context, Decided, Settled, View, plain
from substrate.operations.ticking import replanned
from substrate.ticking import declared
from waypost.model.code import encode, too_big, tree_hash
from waypost.model.errors import Invalid


def deploy(view: View, operation: Deploy, context: Context) -> Decided:
    """The tree, if it isn't there yet, and the record of it. Value: None. Refused with code ``code``."""
    record, files = operation.record, operation.files
    raw = encode(record)
    if view.read(layout.DEPLOYED) == raw:
        return Settled()
    try:
        moved, gone = replanned(view, declared(raw), context)
    except Invalid as bad:
        return Refused("code", bad.message)
    puts = {layout.DEPLOYED: raw, **moved}
    if not view.entries(layout.code_dir(record.tree)):
        if tree_hash(files) != record.tree:
            return Refused("code", f"these files aren't the tree {record.tree[:12]}…")
        if why := too_big((path, len(data)) for path, data in files.items()):
            return Refused("code", f"the tree {record.tree[:12]}… is too big: {why}")
        try:
            puts |= {layout.code_path(record.tree, path): data for path, data in files.items()}
        except BadPath as bad:
            return Refused("code", bad.message, bad.hint)
    subject = f"deploy {plain(record.module)} as {record.tree[:12]}"
    return Change(author="supervisor", subject=subject, puts=puts, deletes=gone)
