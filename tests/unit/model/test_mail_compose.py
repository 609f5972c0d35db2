"""Outgoing mail: what others read in it, and what can't be put into it."""

import email
import email.policy
from typing import Any

import pytest

from waypost.model.mail import Attachment, BadAddress, UnsafeHeader, address, compose, parse, scan

MINIMAL: dict[str, Any] = {  # Any: these are keyword arguments of several types
    "sender": "expenses@example.com",
    "to": "boss@example.com",
    "subject": "Pay 412.00?",
    "text": "Answer with yes or no.",
    "message_id": "<0123@example.com>",
    "date_ms": 1_793_606_400_123,
}


def test_a_plain_mail_is_plain() -> None:
    """What people may look at in their outgoing folder should be readable as it lies there."""
    assert compose(**MINIMAL).decode() == (
        "From: expenses@example.com\r\n"
        "To: boss@example.com\r\n"
        "Subject: Pay 412.00?\r\n"
        "Date: Mon, 02 Nov 2026 08:00:00 +0000\r\n"
        "Message-ID: <0123@example.com>\r\n"
        "MIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=us-ascii\r\n"
        "Content-Transfer-Encoding: 7bit\r\n"
        "\r\n"
        "Answer with yes or no.\r\n"
    )


def test_another_reader_sees_what_was_written() -> None:
    """The standard library's reader is the judge, not our own."""
    raw = compose(
        **MINIMAL
        | {
            "to": ["boss@example.com", "deputy@example.org"],
            "subject": "Zürich 🚆 " * 20,
            "text": "Grüße\n\n.\nFrom me\ntrailing blank \n" + "x" * 3000,
            "in_reply_to": "<1@x>",
            "references": ["<0@x>", "<1@x>"],
            "attachments": [
                Attachment("ticket.png", "image/png", bytes(range(256)) * 9),
                Attachment("Fahrkarte Zürich.pdf", "application/pdf", b""),
                Attachment("old.eml", "message/rfc822", b"Subject: x\r\n\r\nhi"),
            ],
            "automatic": True,
        }
    )
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b"")
    seen = email.message_from_bytes(raw, policy=email.policy.default)
    assert seen["Subject"] == ("Zürich 🚆 " * 20).rstrip() or seen["Subject"] == "Zürich 🚆 " * 20
    assert seen["To"] == "boss@example.com, deputy@example.org"
    assert seen["References"].split() == ["<0@x>", "<1@x>"]
    assert seen["Auto-Submitted"] == "auto-generated"
    body = seen.get_body()
    assert body is not None
    assert body.get_content().replace("\r\n", "\n") == "Grüße\n\n.\nFrom me\ntrailing blank \n" + "x" * 3000 + "\n"
    files = [(part.get_filename(), part.get_payload(decode=True)) for part in seen.iter_attachments()]
    assert files == [
        ("ticket.png", bytes(range(256)) * 9),
        ("Fahrkarte Zürich.pdf", b""),
        ("old.eml", b"Subject: x\r\n\r\nhi"),
    ]
    assert not seen.defects


def test_our_reader_sees_what_was_written() -> None:
    """A mail to a deployment of the same host comes back through `parse`."""
    files = (Attachment("a.txt", "text/plain", b"x\n"),)
    mail = parse(compose(**MINIMAL | {"subject": "Grüße =?utf-8?q?x?=", "text": "Hä?\n", "attachments": files}))
    assert (mail.subject, mail.text, mail.attachments) == ("Grüße =?utf-8?q?x?=", "Hä?\n", files)
    assert mail.message_id == "<0123@example.com>"
    assert not mail.automatic
    assert scan(compose(**MINIMAL, automatic=True)).automatic


def test_the_same_arguments_are_the_same_mail() -> None:
    """A mail that is written again after a crash must be recognisable byte for byte."""
    files = [Attachment("a", "text/plain", b"a")]
    assert compose(**MINIMAL, attachments=files) == compose(**MINIMAL, attachments=files)
    assert compose(**MINIMAL, attachments=files) != compose(**MINIMAL, attachments=files * 2)


@pytest.mark.parametrize(
    "evil", ["x\r\nBcc: all@example.com", "x\n", "\r", "x\0", "x\u2028y", "x\x85y", "\udc80", "a\x1bb"]
)
@pytest.mark.parametrize(
    "field", ["sender", "to", "subject", "message_id", "in_reply_to", "references", "name", "type"]
)
def test_no_field_can_begin_another(field: str, evil: str) -> None:
    """A subject made of somebody's mail must not add recipients."""
    change: dict[str, Any] = {field: [evil] if field == "references" else evil}  # Any: as above
    if field == "name":
        change = {"attachments": [Attachment(evil, "text/plain", b"")]}
    if field == "type":
        change = {"attachments": [Attachment("x", f"text/{evil}", b"")]}
    with pytest.raises((UnsafeHeader, BadAddress)):
        compose(**MINIMAL | change)


@pytest.mark.parametrize("bad", ["", "x", "<x>", "<a b@c>", "<a@b><c@d>", "<é@x>"])
def test_a_message_id_has_its_form(bad: str) -> None:
    """Replies find their run by it."""
    with pytest.raises(UnsafeHeader, match="Message-ID"):
        compose(**MINIMAL | {"message_id": bad})


def test_a_mail_needs_a_recipient_and_a_date_that_exists() -> None:
    """Both would only fail later, at somebody else's server."""
    with pytest.raises(UnsafeHeader, match="nobody"):
        compose(**MINIMAL | {"to": []})
    for date in (10**18, -(10**18)):
        with pytest.raises(UnsafeHeader, match="Date"):
            compose(**MINIMAL | {"date_ms": date})


def test_an_id_with_odd_bytes_can_be_answered() -> None:
    """A stranger's Message-ID goes into our In-Reply-To: nothing in it may make that fail."""
    for odd in (b"<\xfe@x>", b"<a\rb@x>", b"<\xe2\x80\xa8@x>", b"<\x00\x1b@x>", "<日@x>".encode()):
        mail = parse(b"From: a@b.example\nMessage-ID: " + odd + b"\n\nhi")
        assert compose(**MINIMAL, in_reply_to=mail.message_id)


def test_a_decoded_subject_and_attachment_can_be_sent_on() -> None:
    """What `parse` gives, `compose` takes: a workflow that forwards can't be broken by what it is sent."""
    raw = (
        b"From: a@b.example\nSubject: =?utf-8?q?x=0Ay=C2=A0z=E2=80=AE?=\nContent-Type: multipart/mixed; boundary=b\n\n"
        b"--b\nContent-Type: a'~*/%b\n"
        b"Content-Disposition: attachment; filename*=utf-8''a%0ab%c2%a0%e2%80%8b\n\nx\n--b--"
    )
    mail = parse(raw)
    sent = parse(compose(**MINIMAL | {"subject": mail.subject, "attachments": mail.attachments}))
    assert (sent.subject, sent.attachments) == (mail.subject, mail.attachments)


@pytest.mark.parametrize(
    ("value", "normal"),
    [
        ("Boss@Example.COM", "Boss@example.com"),
        ("o'brien+x@sub.example.co", "o'brien+x@sub.example.co"),
        ("expenses@localhost", "expenses@localhost"),
        ("ü@BÜCHER.example", "ü@bücher.example"),
    ],
)
def test_an_address_has_one_form(value: str, normal: str) -> None:
    """Deployments, grants and senders are compared by it."""
    assert address(value) == normal


@pytest.mark.parametrize(
    "bad",
    [
        *("", "x", "@x", "x@", "a b@x", "a@b c", "a@@b", "a@b@c", "<a@b>", "A <a@b>", "a@-b", "a@b-", "a@b..c", "a@b."),
        *(".a@b", "a.@b", "a..b@c", '"a b"@c', "a@[127.0.0.1]", "a@b/c", "a\n@b", "a@b\n", "a\u00a0@b", "a@b\u2028"),
        *("a\ud800@b", "a" * 65 + "@b", "a@" + "b." * 130 + "c", "a@" + "b" * 64),
    ],
)
def test_what_is_no_address_is_refused_in_words(bad: str) -> None:
    """It stands in somebody's code: the error says what is wrong and how it should look."""
    with pytest.raises(BadAddress) as caught:
        address(bad)
    assert "can't be used as a mail address" in str(caught.value)
    assert "name@example.com" in caught.value.hint
