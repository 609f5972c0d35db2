"""Key files: what OpenSSH writes is read, what is written OpenSSH reads, and anything else is refused without a quote.

The keys here are made for these tests and sign nothing else.
"""

import base64
import shutil
import subprocess
from pathlib import Path

import pytest

from substrate.errors import BadObject
from substrate.signing import sshkey, sshsig
from waypost.ed25519 import PrivateKey

OURS = PrivateKey(bytes(range(32)))
OF_SSH_KEYGEN = b"""\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACBPda2FNTC2z8npBlnlkCTg8BJpkPMBAV8hQ8EeSorjhgAAAJD/9tlj//bZ
YwAAAAtzc2gtZWQyNTUxOQAAACBPda2FNTC2z8npBlnlkCTg8BJpkPMBAV8hQ8EeSorjhg
AAAEBixODLberY6ZXkTcyw+qryeHKuCuNoFNmL6sxJywqgpk91rYU1MLbPyekGWeWQJODw
EmmQ8wEBXyFDwR5KiuOGAAAACWEgY29tbWVudAECAwQ=
-----END OPENSSH PRIVATE KEY-----
"""
ITS_PUBLIC_LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE91rYU1MLbPyekGWeWQJODwEmmQ8wEBXyFDwR5KiuOG"
OF_THE_FIRST_VERSION = b"""\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz
c2gtZWQyNTUxOQAAACADoQe/884Qvh1w3RjnS8CZZ+TWMJulDV8d3IZkElUxuAAA
AIjxbipa8W4qWgAAAAtzc2gtZWQyNTUxOQAAACADoQe/884Qvh1w3RjnS8CZZ+TW
MJulDV8d3IZkElUxuAAAAEAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0e
HwOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4AAAAAAECAwQF
-----END OPENSSH PRIVATE KEY-----
"""
ENCRYPTED = b"""\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABD788NMSQ
YotKxK6gqKetr4AAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIFSF9IXbWddb0hB0
Kuw3xXS32jvxPDEhhbQgPogPinM0AAAAkPTNUislJtKsfmAlokxn1dUhwocTTSaO4fQC03
33fxnb7EBVq+Txhtp1k/slWJ8ffb4O1V0plpHizHlOgDNeRXpAPK+2q98NSVD8/qElIO5z
5fLVe6HAuR2Y+8lGvSaugjkcnLGRMOjaYhJZLsUnSCpo+GvEVJC1lHKS9jm3oB7EakBEfO
MZHtICMWVIDDPPag==
-----END OPENSSH PRIVATE KEY-----
"""
ECDSA = b"""\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQTNTvo/n9g6md9gTBnYnRrndXquUZJU
mO1kIqyuW1L5Ns7Oh1A9pr2VEyw+YQoC/qwsPHMtJEAb9JVAHtFiQL3qAAAAoFq3puxat6
bsAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBM1O+j+f2DqZ32BM
GdidGud1eq5RklSY7WQirK5bUvk2zs6HUD2mvZUTLD5hCgL+rCw8cy0kQBv0lUAe0WJAve
oAAAAhAIOgfImK9phD9mHm2zwO26e7wt8gAaolSH4Cm8Z5QOwfAAAAAXgBAgMEBQY=
-----END OPENSSH PRIVATE KEY-----
"""
CHECK = bytes.fromhex("f16e2a5a")
"""The four random bytes in the file of the first version."""


def raw(text: bytes) -> bytes:
    """A key file without its armour."""
    return base64.b64decode(b"".join(text.splitlines()[1:-1]))


def armoured(data: bytes) -> bytes:
    """The other way round, all in one line."""
    begin, *_, end = OF_SSH_KEYGEN.splitlines()
    return b"\n".join([begin, base64.b64encode(data), end, b""])


def test_a_key_of_ssh_keygen_is_read() -> None:
    """With the comment that everybody's has."""
    assert sshsig.public_line(sshkey.read(OF_SSH_KEYGEN).public) == ITS_PUBLIC_LINE


def test_a_key_of_the_first_version_is_read_and_written_anew_byte_for_byte() -> None:
    """It was made by another library: hosts that have such a file go on with it. Only the lines are longer now."""
    assert sshkey.read(OF_THE_FIRST_VERSION).seed == OURS.seed
    written = sshkey.write(OURS, CHECK)
    assert raw(written) == raw(OF_THE_FIRST_VERSION)
    assert {*map(len, written.splitlines()[1:-2])} == {70}


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH isn't installed: the recorded files must do")
def test_ssh_keygen_reads_what_is_written(tmp_path: Path) -> None:
    """The format is OpenSSH's, so that people can look at the key with their own tools."""
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_bytes(sshkey.write(OURS, CHECK))
    shown = subprocess.run(["ssh-keygen", "-y", "-f", file], check=True, capture_output=True, text=True).stdout
    assert shown.split()[:2] == sshsig.public_line(OURS.public).split()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ENCRYPTED, "not an unencrypted OpenSSH private key"),
        (ECDSA, "not an Ed25519 key"),
        (b"", "not an unencrypted"),
        (b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n", "not an unencrypted"),
        (armoured(b""), "not an unencrypted"),
        (OF_SSH_KEYGEN.replace(b"b3Bl", b"b3B!", 1), "not an unencrypted"),
    ],
    ids=["encrypted", "ecdsa", "empty", "pem", "nothing inside", "no base64"],
)
def test_another_key_or_none_is_refused_by_what_it_is(text: bytes, why: str) -> None:
    """Whoever put the file there learns what to change."""
    with pytest.raises(BadObject, match=why):
        sshkey.read(text)


def test_no_bit_and_no_byte_may_be_wrong() -> None:
    """Every part says again what another one says, so a damaged key is noticed before anything is signed with it."""
    whole = raw(sshkey.write(OURS, CHECK))
    damaged = [whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :] for at in range(len(whole))]
    cut = [whole[:at] for at in range(len(whole))]
    for data in [*damaged, *cut, whole + b"\0"]:
        with pytest.raises(BadObject):
            sshkey.read(armoured(data))
