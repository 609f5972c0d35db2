"""The verbs that look after a repository as a whole; those that change it are done while no host runs."""

from pathlib import Path

from waypost.cli import words
from waypost.cli.client import Client, Said
from waypost.cli.output import harmless, out
from waypost.cli.place import existing, plain, told
from waypost.host.answers.records import SealedNow
from waypost.host.datadir.directory import NAME
from waypost.host.errors import Usage
from waypost.host.exits import Exit


def receipt(deployment: str, data: str | None) -> Exit:
    """``waypost receipt DEPLOYMENT``."""
    from substrate.signing.receipt import encode
    from waypost.host.alone import now
    from waypost.host.reading.offline import receipt_for
    from waypost.model.times import stamp

    out(encode(receipt_for(existing(data), plain("the deployment", deployment), stamp(now()))).decode())
    return Exit.OK


def rotate_key(data: str | None) -> Exit:
    """``waypost rotate-key``."""
    from waypost.host.alone import rotate_key

    where = existing(data)
    key = rotate_key(where)
    out(
        f"signed from now on by {key.fingerprint}",
        f"give {where.public_key} to whoever verifies; by the old key `waypost verify` follows to the new one",
        "if the old key was stolen, only the new one is to be trusted, and what the old one signed before",
    )
    return Exit.OK


def accept_rollback(deployment: str, data: str | None) -> Exit:
    """``waypost accept-rollback DEPLOYMENT``."""
    from waypost.host.alone import accept_rollback

    where, name = existing(data), plain("the deployment", deployment)
    accepted = accept_rollback(where, name)
    if accepted.unsigned:
        out(f"set aside: commit {accepted.unsigned}, which this host has not signed (refs/unsigned/ keeps it)")
    if accepted.lost is not None:
        out(f"given up: {accepted.lost} of epoch {accepted.lost.epoch}, and what led there")
    if accepted.now is None:
        out(f"{name} has no repository any more: `waypost restore` a backup, or `waypost run FILE` begins a new one")
        return Exit.OK
    out(
        f"{name} goes on in epoch {accepted.now.epoch}, from {accepted.now}",
        "it is held: mail is accepted, nothing leaves",
        f"next: start its host, then `waypost resume {name}` lists what would go out and lets it go on",
    )
    return Exit.OK


def backup(deployment: str, file: str, data: str | None, *, with_keys: bool) -> Exit:
    """``waypost backup DEPLOYMENT FILE``."""
    from waypost.host.keeping.backup import backup

    where = existing(data)
    folder = Path(file).absolute().parent
    if not folder.is_dir():
        raise Usage(f"{folder}: there is no such folder", hint="make it, or name another file for the backup")

    def sealed(name: str) -> bool:
        try:
            Client(where.socket).post(SealedNow, "deployments", name, "seal")
        except Said as said:
            if said.code != "no-such-deployment":
                raise
            return False
        return True

    made = backup(where, plain("the deployment", deployment), Path(file), with_keys=with_keys, sealed=sealed)
    manifest = made.manifest
    out(
        f"{made.path}: {manifest.deployment} up to flush {manifest.flush} of epoch {manifest.epoch}",
        f"{made.size:,} bytes, {words.count(made.mails, 'mail')} from the spool",
        "with the host's private keys: whoever has the file can sign as this host"
        if with_keys
        else f"without private keys; the history is signed by {where.public_key}",
        "the code that is deployed is in it",
    )
    if made.left_out:
        left_out = words.count(made.left_out, "file")
        out(f"left out: {left_out} in the spool that a host wouldn't take as mail")
    return Exit.OK


def restore(file: str | None, source: str | None, key: str | None, data: str | None, *, allow_network: bool) -> Exit:
    """``waypost restore FILE`` and ``waypost restore --from GIT-URL``."""
    from waypost.host.keeping.restore import restore
    from waypost.host.reading.offline import load_key

    if (file is None) == (source is None):
        raise Usage("name either a backup's file, or a git remote or clone with --from")
    restored = restore(
        Path(told(data) or NAME),
        file=None if file is None else Path(file),
        source=None if source is None else plain("--from", source),
        key=None if key is None else load_key(Path(key)),
        allow_network=allow_network,
    )
    name, place = restored.deployment, restored.data.resolve()
    out(
        f"{name} ({harmless(restored.address)}) is in {place}, up to flush {restored.upto}",
        f"signed by {restored.signer}"
        + ("" if restored.pinned else ", which the history itself names: --key checks it against one that you trust"),
    )
    if restored.signs != restored.signer:
        out(f"from now on signed by {restored.signs}, the key of this data directory")
    if restored.mails:
        out(f"its spool has {words.count(restored.mails, 'mail')} that no host had taken in")
    out(
        f"it is held in epoch {restored.now.epoch}: nothing runs and nothing leaves",
        f"next: `waypost run --data {place}`, then `waypost resume {name}`; never on two hosts at once",
    )
    return Exit.OK
