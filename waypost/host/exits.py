"""What the command's exit status says (decision 15, after sysexits.h). Names only, so that ``--help`` stays quick."""

import enum


class Exit(enum.IntEnum):
    """0 is done and durable; every other says what to do next."""

    OK = 0
    REFUSED = 1
    """A rule says no; the message says which."""
    LEFT = 2
    """Done, and something was left out; it is listed."""
    UNSEEN = 2
    """Of a check: what it was to look at couldn't be looked at."""
    USAGE = 64
    MALFORMED = 65
    """The mail, or the workflow file, can't be used as it is."""
    NO_ADDRESS = 67
    NO_HOST = 69
    WITHHELD = 75
    """Not now: nothing was accepted, try again later."""
    DATA = 78
    """The data directory can't be used."""


BY_CODE = {
    "usage": Exit.USAGE,
    "no-such-run": Exit.USAGE,
    "ambiguous-run": Exit.USAGE,
    "no-such-deployment": Exit.USAGE,
    "malformed": Exit.MALFORMED,
    "too-large": Exit.MALFORMED,
    "workflow": Exit.MALFORMED,
    "no-such-address": Exit.NO_ADDRESS,
    "no-host": Exit.NO_HOST,
    "withheld": Exit.WITHHELD,
    "busy": Exit.WITHHELD,
    "data-directory": Exit.DATA,
    "credentials": Exit.DATA,
}
"""By the ``code`` of an error, as the API answers it too; every other code is REFUSED."""


def exit_for(code: str) -> Exit:
    """The exit status that an error with this code ends the command with."""
    return BY_CODE.get(code, Exit.REFUSED)
