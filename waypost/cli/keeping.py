"""The verbs that look after a repository as a whole; those that change it are done while no host runs."""

from waypost.cli.output import out
from waypost.cli.place import existing, plain
from waypost.host.exits import Exit


def receipt(deployment: str, data: str | None) -> Exit:
    """``waypost receipt DEPLOYMENT``."""
    from substrate.receipt import encode
    from waypost.host.alone import now
    from waypost.host.offline import receipt_for
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
