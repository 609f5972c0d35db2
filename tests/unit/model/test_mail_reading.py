"""Rules of reading a mail that the collected cases don't pin down one by one."""

from pathlib import Path

import pytest

from waypost.model.mail import NoAttachment, malformed, parse, safe_name, scan, thread_candidates
from waypost.model.mail_fields import HEADER_LIMIT, block
from waypost.model.mail_html import to_text
from waypost.model.mail_mime import DEPTH, PARTS
from waypost.model.mail_scan import ID_LIMIT, THREAD_LIMIT
from waypost.model.mail_text import decode, unbase64, words

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "mail"


def test_a_field_is_found_whatever_its_case_blanks_and_folds() -> None:
    """One value for one field, however it was laid out."""
    for raw in (b"Subject: a b\n\n", b"SUBJECT \t: a\r\n b\r\n\r\n", b"subject:\n\ta\n  b  \n\n"):
        assert block(raw).first("subject") == b"a b"


def test_junk_among_fields_is_passed_over_and_after_them_begins_the_body() -> None:
    """An mbox line or a torn fold hides no field; a forgotten empty line loses no text."""
    head = block(b"From x 2026\nFrom: a@b\n__\n folded junk\nTo: c@d\nhello\nworld\n")
    assert [field.name for field in head.fields] == ["from", "to"]
    assert head.first("to") == b"c@d"
    assert parse(b"From: a@b\nhello\nworld\n").text == "hello\nworld\n"


def test_a_value_with_a_bare_cr_stays_one_value() -> None:
    """Among LF lines a CR is data, so that it can't smuggle a field past a relay that reads it otherwise."""
    gist = scan(b"Subject: a\rMessage-ID: <evil@x>\nMessage-ID: <good@x>\n\n")
    assert gist.id == b"<good@x>"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b"\0" * 100, "not a mail"),
        (b"just a text\nwith two lines\n", "not a mail"),
        (b'{"amount": 12}', "not a mail"),
        (b"\x89PNG\r\n\x1a\nabc", "not a mail"),
        (b"import os: x\ndef f():\n    pass\n", "not a mail"),
        (b"Subject: " + b"x" * 200, "over 200 bytes"),
        (b"From: a@b\nX: " + b"y\n " * (HEADER_LIMIT // 2) + b"\n\n", "header"),
        (b"Message-ID: <" + b"i" * ID_LIMIT + b">\n\nhi", "Message-ID"),
    ],
)
def test_the_door_says_why_it_refuses(raw: bytes, reason: str) -> None:
    """One line that a sender understands; SMTP and the command line both print it."""
    refusal = malformed(raw, limit=200 if len(raw) == 209 else 10 * HEADER_LIMIT)
    assert refusal is not None
    assert reason in refusal
    assert "\n" not in refusal


def test_a_mail_of_exactly_the_limit_is_taken() -> None:
    """The limit is the largest mail, not the smallest refused."""
    raw = b"Subject: x\n\n"
    assert malformed(raw, limit=len(raw)) is None
    assert malformed(raw, limit=len(raw) - 1) is not None


@pytest.mark.parametrize(
    ("field", "sender", "count"),
    [
        (b"boss@example.com", "boss@example.com", 1),
        (b"The Boss <boss@EXAMPLE.Com>", "boss@example.com", 1),
        (b'"boss@example.com" <mallory@evil.example>', "mallory@evil.example", 1),
        (b"boss@example.com <mallory@evil.example>", "mallory@evil.example", 1),
        (b"=?utf-8?q?boss=40example=2Ecom=2C?= <m@evil.example>", "m@evil.example", 1),
        (b"=?utf-8?q?boss=40example=2Ecom?=", "", 0),
        (b"<boss@example.com> <mallory@evil.example>", "boss@example.com", 2),
        (b"boss@example.com, mallory@evil.example", "boss@example.com", 2),
        (b"boss@example.com mallory@evil.example", "boss@example.com", 2),
        (b"m@evil.example (boss@example.com)", "m@evil.example", 1),
        (b"(a (nested) comment) <a (x) @ b (y) . example>", "a@b.example", 1),
        (b"<@relay.example:user@example.com>", "user@example.com", 1),
        (b"team: a@x.example, b@x.example;", "a@x.example", 2),
        (b"undisclosed-recipients:;", "", 0),
        (b"<>", "", 0),
        (b"", "", 0),
        (b"(" * 1000 + b"<", "", 0),
        (b'"unclosed <a@b.example>', "", 0),
        (b"<" + b"a" * 300 + b"@b.example>", "", 0),
    ],
)
def test_the_sender_is_the_address_and_never_the_name(field: bytes, sender: str, count: int) -> None:
    """Who may answer is decided by it: a name that looks like an address must not count, two addresses must show."""
    gist = scan(b"From: " + field + b"\n\n")
    assert (gist.sender, gist.from_count) == (sender, count)
    assert gist.sole_sender == (sender if count == 1 else None)


def test_two_from_fields_are_two_senders() -> None:
    """A second field must not hide behind the first."""
    assert scan(b"From: boss@example.com\nfrom : m@evil.example\n\n").sole_sender is None


def test_an_id_without_angles_is_found_in_a_thread() -> None:
    """Some programs leave the angles out, on both sides."""
    raw = b"From: a@b\nIn-Reply-To: your mail of Monday 123@x\n\n"
    assert thread_candidates(scan(raw)) == (b"123@x",)


def test_a_thread_is_looked_up_by_a_bounded_number_of_ids() -> None:
    """Nobody makes the host look up a million ids with one mail; the newest are kept."""
    raw = b"From: a@b\nReferences: " + b" ".join(b"<%d@x>" % n for n in range(5000)) + b"\n\n"
    candidates = thread_candidates(scan(raw))
    assert len(candidates) == THREAD_LIMIT
    assert candidates[0] == b"<4999@x>"


def test_parts_beyond_the_depth_and_the_count_stay_whole() -> None:
    """Bounded work; what isn't opened is kept as one piece, so that nothing is lost."""
    deep = b"core"
    for level in range(DEPTH + 5):
        mark = b"b%d" % level
        deep = (
            b"Content-Type: multipart/mixed; boundary="
            + mark
            + b"\n\n--"
            + mark
            + b"\n"
            + deep
            + b"\n--"
            + mark
            + b"--"
        )
    mail = parse(b"Subject: x\n" + deep)
    assert [b"core" in each.content for each in mail.attachments] == [True]

    wide = b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n" + b"\n--b\nContent-Type: a/b\n\nx" * (PARTS * 2)
    mail = parse(wide)
    assert len(mail.attachments) == PARTS
    assert mail.attachments[-1].content.count(b"--b") == PARTS


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (b'attachment; filename="a;b \\"c\\".txt"', "a;b _c_.txt"),
        (b"attachment; filename*=iso-8859-1'de'%FCber.txt", "über.txt"),
        (b"attachment; filename*0*=utf-8''%e4%bd; filename*1*=%a0; filename*2=.txt", "你.txt"),
        (b"attachment; filename=plain.txt; filename*=utf-8''better.txt", "better.txt"),
        (b"attachment; filename==?utf-8?b?w7xiZXIudHh0?=", "über.txt"),
        (b"attachment; filename*99999=a; filename*1=b", "part-1.bin"),
        (b"attachment; filename*=utf-7''+AC8-x", "+AC8-x"),
        (b"attachment; filename=..", "part-1.bin"),
        (b"attachment; filename=a\xe2\x80\xaefdp.exe", "a fdp.exe"),
        (b'attachment; filename="C:\\\\Users\\\\x\\\\plan.txt"', "plan.txt"),
        (b"attachment; FILENAME = x.txt ; filename=y.txt", "x.txt"),
    ],
)
def test_a_file_name_comes_out_readable_and_safe(value: bytes, name: str) -> None:
    """Workflows write attachments into folders: the name must be the sender's, and harmless."""
    mail = parse(b"Subject: x\nContent-Type: application/x\nContent-Disposition: " + value + b"\n\nx")
    assert [each.name for each in mail.attachments] == [name]


def test_a_long_file_name_keeps_its_ending() -> None:
    """200 bytes fit every file system with a prefix to spare, and the ending says what the file is."""
    name = safe_name("é" * 300 + ".tar.gz")
    assert name.endswith(".gz")
    assert 190 < len(name.encode()) <= 200


def test_a_missing_attachment_is_an_error_that_names_those_there() -> None:
    """The workflow's author reads it in a failed step."""
    mail = parse((EXAMPLES / "claim-small.eml").read_bytes())
    assert mail.attachment("RECEIPT.txt").content.startswith(b"Bakery")
    with pytest.raises(NoAttachment, match=r"'bill.pdf'.*'receipt.txt'"):
        mail.attachment("bill.pdf")


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        (b"caf\xe9", "", "café"),
        ("café".encode(), "", "café"),
        ("café".encode(), "us-ascii", "café"),
        (b"\x93x\x94", "iso-8859-1", "“x”"),
        (b"\xff\xfea\0", "utf-16", "a"),
        (b"+ADw-", "utf-7", "+ADw-"),
        (b"x\x9cKLJ", "zlib", "xœKLJ"),
        (b"abc", "rot13", "abc"),
        (b"abc", "../../x\0" * 100, "abc"),
        (b"\xef\xbb\xbfx", "utf-8", "x"),
        (b"\xed\xa0\x80", "utf-8", "\ufffd\ufffd\ufffd"),
    ],
)
def test_a_charset_is_believed_only_if_it_is_one(data: bytes, charset: str, text: str) -> None:
    """Python's codec names reach decompressors and escapes; none of them may be a mail's to choose."""
    assert decode(data, charset) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"=?utf-8?q?a=0D=0ABcc:_x?=", "a Bcc: x"),
        (b"=?utf-8?b?w7w=?= =?utf-8?b?w7w=?=", "üü"),
        (b"=?utf-8?b?ww==?=  =?utf-8?b?vA==?=", "ü"),
        (b"a =?utf-8*en?q?b?= c", "a b c"),
        (b"=?utf-8?q?unclosed", "=?utf-8?q?unclosed"),
        (b"caf\xe9", "café"),
    ],
)
def test_encoded_words_become_one_harmless_line(value: bytes, text: str) -> None:
    """A decoded line end must not become a header field or a line of a log."""
    assert words(value) == text


def test_base64_reads_what_can_be_read() -> None:
    """Torn, padded too often, with junk: never an exception, never junk as data."""
    assert unbase64(b"PGh0*bWw+\r\nCg==ignored") == b"<html>\n"
    assert unbase64(b"QUJDR") == b"ABC"
    assert unbase64(b"====") == b""


def test_html_becomes_lines_and_its_quotes_stay_quotes() -> None:
    """An answer by a mail program that writes only HTML must show who said what."""
    markup = (
        "<style>p{}</style><p>Yes &amp; <b>thanks</b></p><!-- no --><script>no()</script>"
        "<div>On Monday:<blockquote>Pay?<br>Really?</blockquote></div>a < b"
    )
    assert to_text(markup) == "Yes & thanks\nOn Monday:\n> Pay?\n> Really?\na < b"
    assert to_text("&#" + "9" * 5000 + ";&#xD800;<p") == "\ufffd\ufffd"


@pytest.mark.parametrize(
    "raw",
    [
        b"Subject: x\nContent-Type: text/html\n\n" + b"<p>a</p>&amp;" * 250_000,
        b"Subject: x\nContent-Type: text/html\n\n" + b"<!--" * 100_000,
        b"Subject: x\nContent-Type: text/html\n\n" + b"<a" * 100_000,
        b"Subject: x\nContent-Type: text/html\n\n" + b"< " * 100_000 + b">",
        b"From: " + b"(" * 100_000 + b"\n\n",
        b"From: " + b'"' * 100_000 + b"\n\n",
        b"From: " + b"<" * 100_000 + b"\n\n",
        b"From: " + b"," * 500_000 + b"\n\n",
        b"From: " + b" ".join(b"%x@b" % number for number in range(65_000)) + b"\n\n",
        b"Subject: " + b"=?a?q?" * 80_000 + b"\n\n",
        b"Subject: " + b" " * 900_000 + b"x\n\n",
        b"References: " + b"<a" * 250_000 + b"\n\n",
        b"Content-Type: text/plain; " + b"x=" * 100_000 + b"\n\n",
        b'Content-Type: text/plain; x="' + b"\\" * 200_000 + b"\n\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"\n--b " * 100_000,
        b"Content-Type: multipart/mixed; boundary=" + b"b" * 300_000 + b"\n\n",
        b"a:\n" * 30_000,
        b"x\n" * 200_000,
        b"From: a@b\nIn-Reply-To: <1@x>\n\n" + b"> a\n" * 1_000_000,
    ],
    ids=lambda raw: repr(raw[:60]),
)
def test_a_mail_made_to_be_slow_is_read_like_any_other(raw: bytes) -> None:
    """Each of these hangs a reader that is quadratic, for minutes: the suite's own time limit is the judge."""
    assert parse(raw).sha256 == scan(raw).sha256


def test_the_mails_of_the_example_say_what_it_needs() -> None:
    """The example's workflow reads amount and purpose from the text, and the receipt beside it."""
    small, large = (parse((EXAMPLES / name).read_bytes()) for name in ("claim-small.eml", "claim-large.eml"))
    assert small.text.startswith("Amount: 18.40\nPurpose: Breakfast")
    assert large.text.startswith("Amount: 412.00\nPurpose: Train to Zürich")
    assert large.sender_name == "Jürgen Weber"
    assert large.attachment("ticket.png").content.startswith(b"\x89PNG")
    for name in ("claim-small.eml", "claim-large.eml", "boss-yes.eml", "boss-no.eml"):
        assert malformed((EXAMPLES / name).read_bytes(), limit=10_000) is None
