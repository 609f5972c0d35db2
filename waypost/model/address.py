"""The address of a mailbox that Waypost itself will use: checked, and in one form, by which addresses are compared.

Reading what stands in a header field is `waypost.model.mail_address`'s job.
"""

import re

from waypost.model.errors import Invalid

ADDRESS_LIMIT = 254
"""Characters of an address (RFC 5321 §4.5.3.1.3, without the angles)."""
LOCAL_LIMIT = 64

_ATOM = r'[^\x00-\x20\x7f()<>\[\]:;@\\,."]+'
_LOCAL = re.compile(rf"{_ATOM}(\.{_ATOM})*\Z")
# A letter, a digit, or anything beyond ASCII; a hyphen only inside.
_LABEL = re.compile(r"(?!-)(?:[A-Za-z0-9-]|[^\x00-\x7f]){1,63}(?<!-)\Z")


class BadAddress(Invalid):
    """Text that was to be used as a mail address isn't one."""

    def __init__(self, value: str, reason: str) -> None:
        super().__init__(
            f"{value[:ADDRESS_LIMIT]!r} can't be used as a mail address: {reason}",
            hint="write it as name@example.com, without a display name or angle brackets",
        )
        self.value = value
        self.reason = reason


def address(value: str) -> str:
    """Check an address and give it its one form, the domain in lower case. Raises BadAddress.

    A dot-atom before the ``@`` (RFC 5322 §3.4.1; letters beyond ASCII as RFC 6531 has them), a host name after it;
    neither quoted local parts nor address literals.
    """
    local, at, domain = value.rpartition("@")
    if not at:
        raise BadAddress(value, "there is no '@' in it")
    if len(value) > ADDRESS_LIMIT or len(local) > LOCAL_LIMIT:
        raise BadAddress(value, f"it is longer than {ADDRESS_LIMIT} characters, or {LOCAL_LIMIT} before the '@'")
    # Blanks, separators and controls beyond ASCII aren't printable; the classes above let them through.
    if not _LOCAL.match(local) or not local.isprintable():
        raise BadAddress(value, f"{local!r} before the '@' is not a plain name")
    labels = domain.split(".")
    if not all(_LABEL.match(label) for label in labels) or not domain.isprintable():
        raise BadAddress(value, f"{domain!r} after the '@' is not a host name")
    return normal(value)


def normal(text: str) -> str:
    """The form in which addresses are compared: local part as it is, domain in lower case. Total; checks nothing.

    Lower case and no more: `str.casefold` would make one of two host names that differ (``ß`` and ``ss``).
    """
    local, at, domain = text.rpartition("@")
    return f"{local}{at}{domain.lower()}"
