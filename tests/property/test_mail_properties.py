"""Reading a mail is total and one thing, writing one can be read back."""

import email
import email.policy
from email.message import EmailMessage

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from waypost.model.mail import (
    Attachment,
    Mail,
    answer,
    compose,
    malformed,
    parse,
    safe_name,
    scan,
    subject,
    thread_candidates,
)
from waypost.testing import cases

PIECES = [
    *(b"\n", b"\r\n", b"\r", b"\n\n", b" ", b"\t", b":", b";", b"=", b'"', b"<", b">", b"(", b")", b",", b"@", b"\\"),
    *(b"From", b"To", b"Subject", b"Message-ID", b"Message-ID :", b"References:", b"Content-Type:", b"From ", b"\0"),
    *(b"multipart/mixed; boundary=b", b'multipart/alternative; boundary="b"', b"message/rfc822", b"text/html"),
    *(b"Content-Transfer-Encoding: base64", b"quoted-printable", b"charset=utf-16", b"charset*0*=x''%", b"\xff"),
    *(b"=?utf-8?b?", b"?=", b"=?iso-2022-jp?q?", b"a@b.example", b"<x@y>", b"yes", b"> ", b"&#9", b"<p>", b"<!--"),
    *(b"--b", b"--b--", b"text/plain", b"filename*1*=", b"\x1b$B"),
]
SAMPLES = [path.read_bytes() for path in cases.folder("eml") + cases.folder("eml_synth")]
SMALL = [raw for raw in SAMPLES if len(raw) < 6000] or [b"From: a@b.example\r\nMessage-ID: <1@x>\r\n\r\nhello\r\n"]

soup = st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=60).map(b"".join)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A collected mail with a few cuts, copies and insertions."""
    raw = draw(st.sampled_from(SMALL))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, min(len(raw), start + 200)))
        put = draw(st.sampled_from(PIECES) | st.binary(max_size=8) | st.just(raw[start:end] * 2))
        raw = raw[:start] + put + raw[end:]
    return raw


@given(st.one_of(st.binary(max_size=300), soup, mutated()))
def test_any_bytes_are_read_and_host_and_child_agree(raw: bytes) -> None:
    """Whatever arrives, nobody dies of it, and both sides know it by one id and one sender."""
    mail, gist = parse(raw), scan(raw)
    assert subject(raw) == gist.subject
    assert mail.message_id == gist.message_id
    assert gist.id
    assert (mail.sender, mail.subject, mail.sha256) == (gist.sender, gist.subject, gist.sha256)
    assert mail.automatic == gist.automatic
    assert len(set(thread_candidates(gist))) == len(thread_candidates(gist))
    assert answer(raw) == answer(mail)
    malformed(raw, limit=10_000)


@given(st.one_of(soup, mutated()))
def test_any_mail_survives_json(raw: bytes) -> None:
    """It is a step's argument and may be a step's result."""
    mail = parse(raw)
    assert msgspec.json.decode(msgspec.json.encode(mail), type=Mail) == mail


@given(st.one_of(soup, mutated()))
def test_names_and_lines_for_people_hold_no_control_characters(raw: bytes) -> None:
    """They are printed on terminals and used as file names."""
    mail = parse(raw)
    shown = (mail.subject, mail.sender, mail.sender_name, mail.message_id, *(each.name for each in mail.attachments))
    assert not [text for text in shown if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text)]
    assert all(each.name and safe_name(each.name) == each.name for each in mail.attachments)


@given(st.text(max_size=300))
def test_a_safe_name_is_safe_and_stays_as_it_is(claimed: str) -> None:
    """Making it safe again must change nothing, or two places would name one file differently."""
    name = safe_name(claimed)
    assert safe_name(name) == name
    assert len(name.encode("utf-8", "surrogatepass")) <= 200
    assert not set(name) & set("/\\:\0")
    assert name not in {".", "..", ".git"}


text = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Cf")), max_size=120)
files = st.lists(
    st.builds(
        Attachment,
        st.sampled_from(["a.txt", "Zürich 1.pdf", 'q"uote;.bin']),
        st.just("application/x-y"),
        st.binary(max_size=200),
    ),
    max_size=3,
)


@given(subject=text, body=st.lists(text, max_size=6).map("\n".join), attached=files)
def test_what_is_written_is_read_back(subject: str, body: str, attached: list[Attachment]) -> None:
    """By our reader and by the standard library's, which knows nothing of ours."""
    raw = compose(
        sender="a@x.example",
        to="b@y.example",
        message_id="<1@x>",
        date_ms=0,
        subject=subject,
        text=body,
        attachments=attached,
    )
    mail = parse(raw)
    assert mail.subject == subject.strip()
    assert mail.text == body + "\n" or mail.text == body
    assert [each.content for each in mail.attachments] == [each.content for each in attached]
    seen = email.message_from_bytes(raw, policy=email.policy.default)
    found = seen.get_body()
    assert found is not None
    assert found.get_content().replace("\r\n", "\n").rstrip("\n") == body.rstrip("\n")
    assert [part.get_filename() for part in seen.iter_attachments()] == [each.name for each in attached]


@given(plain=text.filter(str.strip), markup=text, attached=st.lists(st.binary(max_size=300), max_size=3))
def test_a_sound_mail_reads_as_the_standard_library_wrote_it(plain: str, markup: str, attached: list[bytes]) -> None:
    """Our own splitting must not differ from the common understanding where a mail is in order."""
    written = EmailMessage()
    written["From"] = "Ünal <a@x.example>"
    written["Subject"] = "x"
    written.set_content(plain)
    written.add_alternative(f"<p>{markup}</p>", subtype="html")
    for place, content in enumerate(attached):
        written.add_attachment(content, maintype="application", subtype="x", filename=f"ü{place}")
    mail = parse(written.as_bytes())
    assert mail.sender_name == "Ünal"
    assert mail.text.rstrip("\n") == plain
    assert mail.html.rstrip("\n") == f"<p>{markup}</p>"
    assert [(each.name, each.content) for each in mail.attachments] == [(f"ü{n}", c) for n, c in enumerate(attached)]
