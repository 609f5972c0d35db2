"""Real and hostile mails, each with the outcome that was decided for it."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from waypost.model.mail import Gist, Mail, malformed, parse, scan, thread_candidates
from waypost.testing import cases

LIMIT = 32 * 1024 * 1024
FOLDERS = ("eml", "eml_synth")
ROWS = {(folder, row["file"]): row for folder in FOLDERS for row in cases.rows(f"{folder}/index.tsv")}
FILES = [pytest.param(folder, path, id=path.stem) for folder in FOLDERS for path in cases.folder(folder)]

ANY_FIRST_LINE = "-"
# Where the index leaves a choice, or contradicts itself, this is the choice.
OWN_ID = {
    "s17b_msgid_badutf8_fe.eml": r"<\xfe@example.com>",
    # A mail that begins with an empty line has no header: everything is body, the id is the hash.
    "s25_blank_line_first.eml": "sha256:5070a388faba445449619c78eb414de2421f97a4a6b569f59c6bde6c036a5eb0",
    # Where CR alone ends every line, it is a line end.
    "s29_cr_only.eml": "<cr@example.com>",
}
REFUSED = {"s25_blank_line_first.eml": "not a mail", "s31_zero_bytes.eml": "0 bytes"}
AUTOMATIC = {
    "15_dsn_422.eml",
    "29_multipart_no_boundary.eml",
    "55_truncated_boundary_bounce.eml",
    "57_rfc2231_charset.eml",
    "71_auto_reply_exchange.eml",
    "s45_auto_submitted.eml",
    "s47_null_return_path.eml",
}

Check = Callable[[Mail, Gist], bool]


@cache
def read(path: Path) -> tuple[Mail, Gist]:
    """As a child reads it, and as the host does: once for all that is asked of it."""
    raw = path.read_bytes()
    return parse(raw), scan(raw)


def names(mail: Mail) -> list[str]:
    return [each.name for each in mail.attachments]


def contents(mail: Mail) -> list[bytes]:
    return [each.content for each in mail.attachments]


# What "is hard" about the mail beyond its id and first line, as a fact.
FACTS: dict[str, Check] = {
    "01_obs_space_before_colon.eml": lambda m, g: m.sender == "jdoe@machine.example" and m.subject == "Saying Hello",
    "03_msgid_no_angles.eml": lambda m, g: m.sender == "bb@bug.com" and m.sender_name == "Big Bug",
    "05_charset_x_unknown.eml": lambda m, g: "Envoyé par" in m.text,
    "07_iso2022jp.eml": lambda m, g: m.subject == "まみむめも",
    "09_ks_c_5601.eml": lambda m, g: m.subject == "test",
    "11_rfc2047_unknown_charset.eml": lambda m, g: m.subject == "TEST" and m.sender == "",
    "13_two_content_types.eml": lambda m, g: m.html == "<p>foo</p>\n" and not m.attachments,
    "15_dsn_422.eml": lambda m, g: m.attachments[0].content_type == "message/delivery-status",
    "17_false_multipart.eml": lambda m, g: m.text.strip() == "" and not m.attachments,
    "19_parts_without_boundaries.eml": lambda m, g: "Messy part" in m.text and m.subject == "",
    "21_no_final_newline.eml": lambda m, g: m.text.startswith("Hello,"),
    "23_header_200k.eml": lambda m, g: len(m.subject) > 50_000 and "böse" in m.subject,
    "25_bad_wrap.eml": lambda m, g: contents(m) == [b"<html>\n"],
    "27_part_with_no_headers.eml": lambda m, g: "An HTML section" in m.text,
    "29_multipart_no_boundary.eml": lambda m, g: not m.attachments,
    "31_base64_junk_char.eml": lambda m, g: contents(m) == [b"<html>\n"],
    "33_raw_8bit_filename.eml": lambda m, g: names(m) == ["管理.doc"] and m.to == ("test@dome.domain",),
    "35_charset_param_doubled.eml": lambda m, g: names(m) == ["favicon.png"] and "<html>" in m.html,
    "37_root_is_attachment.eml": lambda m, g: m.text == "" and contents(m)[0].startswith(b"\x89PNG"),
    "39_empty_inner_multipart.eml": lambda m, g: not m.attachments,
    "41_message_partial_2of2.eml": lambda m, g: not m.attachments,
    "43_ctype_no_slash.eml": lambda m, g: not m.attachments,
    "45_to_header_130k_encoded_words.eml": lambda m, g: m.to == ("test@test.com",),
    "47_encoded_word_comma_and_quotes.eml": lambda m, g: (
        (g.from_count, m.sender_name, len(m.to), len(m.cc)) == (1, "LastßlName, FirstName", 1, 2)
    ),
    "49_html_before_plain.eml": lambda m, g: contents(m) == [b"PNG here"] and "HTML here" in m.html,
    "51_same_boundary_nested.eml": lambda m, g: names(m) == ["xx.gif"],
    "53_cc_three_times.eml": lambda m, g: m.cc == ("ccc@zzz.org", "ddd@zzz.org", "eee@zzz.org"),
    "55_truncated_boundary_bounce.eml": lambda m, g: len(m.to) == 2 and "554 Too many hops" in m.text,
    "57_rfc2231_charset.eml": lambda m, g: m.text == "Some message.\n",
    "59_no_blank_line.eml": lambda m, g: m.subject == "here's something interesting",
    "61_root_is_rfc822.eml": lambda m, g: b"<4B66B890.4070408@teconcept.de>" in contents(m)[0],
    "63_pgp_signed_invalid.eml": lambda m, g: m.text == "There was a day \na happy day\n" and len(m.attachments) == 1,
    "65_spliced_headers_two_msgids.eml": lambda m, g: m.sender == "",
    "67_base64_trailing_garbage.eml": lambda m, g: "yötä vaan.\n" in m.text and "ignored" not in m.text,
    "69_utf8_in_params.eml": lambda m, g: m.subject == "こんにちは",
    "71_auto_reply_exchange.eml": lambda m, g: m.sender_name == "Neko, Nyaan",
    "s09b_msgid_dotgit.eml": lambda m, g: g.id == b"<.git/config>",
    "s17b_msgid_badutf8_fe.eml": lambda m, g: g.id == b"<\xfe@example.com>",
    "s25_blank_line_first.eml": lambda m, g: "Message-ID: <late@example.com>" in m.text,
    "s27_sep_crlf_lf.eml": lambda m, g: "Message-ID: <no@example.com>" in m.text,
    "s33_utf7.eml": lambda m, g: "<script>" not in m.text,
    "s37_winmail_dat.eml": lambda m, g: contents(m)[0][:4] == b"\x78\x9f\x3e\x22",
    "s39_nested_400.eml": lambda m, g: len(m.attachments) == 1 and b"b00001" in contents(m)[0],
    "s40_rfc822_chain_300.eml": lambda m, g: b"deep" in contents(m)[0],
    "s42_html_only.eml": lambda m, g: m.text == "Bonjour & merci" and "<p>" in m.html,
    "s43_abs_filename.eml": lambda m, g: names(m) == ["x"],
    "s43_ctrl_filename.eml": lambda m, g: names(m) == ["a b.txt"],
    "s43_dotgit_filename.eml": lambda m, g: names(m) == ["git"],
    "s43_trail_filename.eml": lambda m, g: names(m) == ["report.pdf"],
    "s52_line_too_long.eml": lambda m, g: max(map(len, m.text.split("\n"))) == 70_000,
    "s54_many_headers.eml": lambda m, g: len(m.headers) > 20_000,
    "s56_u2028_in_header.eml": lambda m, g: m.header("X-V") == "a Message-ID: <ls@evil.example>",
}
# These are said completely by their id and first line.
PLAIN = {
    "s01_msgid_empty.eml",
    "s03_msgid_folded_lead.eml",
    "s04b_msgid_folded_inside_space.eml",
    "s06_msgid_upper.eml",
    "s08_lookalike_headers.eml",
    "s11_msgid_300.eml",
    "s12b_msgid_300_tail1.eml",
    "s13_msgid_cjk100.eml",
    "s14b_msgid_case_lower.eml",
    "s15b_msgid_nfd.eml",
    "s16b_msgid_percent2f.eml",
    "s19_msgid_smtpin_added.eml",
    "s21_msgid_comment.eml",
    "s23_blank_before_colon.eml",
    "s29_cr_only.eml",
    "s31_zero_bytes.eml",
    "s35_charset_zlib.eml",
    "s45_auto_submitted.eml",
    "s47_null_return_path.eml",
    "s49_dup_delivery_a.eml",
    "s50_same_id_other_body.eml",
    "s58a_suffix_collision_first.eml",
    "s59_msgid_dot_json.eml",
}


@pytest.mark.skipif(not cases.available(), reason=cases.MISSING)
def test_every_mail_of_the_collection_has_its_outcome_here() -> None:
    """A case that is added must be decided: a fact, or the word that id and first line say it all."""
    there = {path.name for folder in FOLDERS for path in cases.folder(folder)}
    assert there == {file for _, file in ROWS}
    assert there == set(FACTS) | PLAIN
    assert not set(FACTS) & PLAIN


@pytest.mark.parametrize(("folder", "path"), FILES)
def test_a_hostile_mail_has_the_id_that_was_decided(folder: str, path: Path) -> None:
    """Host and child file a mail under one id, whatever its header block looks like."""
    mail, gist = read(path)
    expected = OWN_ID.get(path.name, ROWS[folder, path.name]["expected_message_id"])
    assert gist.message_id == mail.message_id == expected


@pytest.mark.parametrize(("folder", "path"), FILES)
def test_a_hostile_mail_shows_its_text(folder: str, path: Path) -> None:
    """Whatever its charset, nesting or damage, what a person wrote is what a workflow gets."""
    expected = ROWS[folder, path.name]["expected_plain_first_line"]
    first = next((line.strip() for line in read(path)[0].text.split("\n") if line.strip()), "-")
    if expected.endswith("...") and expected.startswith("xxx"):
        assert first.startswith(expected.removesuffix("..."))
    elif expected != ANY_FIRST_LINE:
        assert first == expected


@pytest.mark.parametrize(("folder", "path"), FILES)
def test_a_hostile_mail_reads_as_decided(folder: str, path: Path) -> None:
    """The fact that makes the mail a case: its attachment, its names, its repeated fields."""
    if path.name in FACTS:
        assert FACTS[path.name](*read(path))


@pytest.mark.parametrize(("folder", "path"), FILES)
def test_the_door_takes_every_mail_that_is_one(folder: str, path: Path) -> None:
    """A broken mail is a mail: only what has no header at all is refused, with a reason."""
    refusal = malformed(path.read_bytes(), limit=LIMIT)
    if path.name in REFUSED:
        assert refusal is not None
        assert REFUSED[path.name] in refusal
    else:
        assert refusal is None


@pytest.mark.parametrize(("folder", "path"), FILES)
def test_a_mail_from_a_machine_is_known_as_one(folder: str, path: Path) -> None:
    """Bounces, absence notes and list mail get no notice back, or two hosts write to each other for ever."""
    mail, gist = read(path)
    assert gist.automatic == mail.automatic == (path.name in AUTOMATIC)


@pytest.mark.parametrize(("folder", "path"), FILES)
def test_a_mail_survives_json(folder: str, path: Path) -> None:
    """It is a step's argument: what JSON would change could not be replayed."""
    mail, _ = read(path)
    assert msgspec.json.decode(msgspec.json.encode(mail), type=Mail) == mail


@pytest.mark.parametrize(("folder", "path"), FILES)
def test_crlf_and_lf_are_one_mail_without_trace_fields(folder: str, path: Path) -> None:
    """The same mail through SMTP and through a Maildir is a redelivery, not an id clash."""
    raw = path.read_bytes()
    if b"\n" not in raw:
        return
    unix = raw.replace(b"\r\n", b"\n")
    windows = unix.replace(b"\n", b"\r\n")
    traced = b"Received: from a by b\r\n\tfor c\r\nDelivered-To: x@example.com\r\n" + windows
    one = scan(unix)
    assert one.bare_sha256 == scan(windows).bare_sha256
    if not raw.startswith((b"\r\n", b"From ")):
        other = scan(traced)
        assert other.bare_sha256 == one.bare_sha256
        assert other.sha256 != one.sha256


@pytest.mark.skipif(not cases.available(), reason=cases.MISSING)
def test_ids_that_look_alike_are_different() -> None:
    """Case, normal forms, percent signs and what follows byte 255 all count: ids are bytes."""
    raws = [path.read_bytes() for path in cases.folder("eml_synth")]
    # Two of the collection share an id on purpose.
    found = [scan(raw).id for raw in raws]
    assert sorted(each for each, after in pairwise(sorted(found)) if each == after) == [b"<dup@example.com>"]


@pytest.mark.skipif(not cases.available(), reason=cases.MISSING)
def test_same_id_with_other_content_is_told_apart() -> None:
    """Else anyone could suppress a mail by sending another under its id first."""
    folder = cases.FOLDER / "eml_synth"
    first, other = (
        scan((folder / name).read_bytes()) for name in ("s49_dup_delivery_a.eml", "s50_same_id_other_body.eml")
    )
    assert first.id == other.id
    assert first.bare_sha256 != other.bare_sha256


def test_a_mail_with_references_names_its_thread_newest_first() -> None:
    """In-Reply-To first, then References from the last to the first, each once."""
    raw = b"From: a@b\nIn-Reply-To: <3@x> (was <2@x>)\nReferences: <1@x>\n <2@x>\n\t<3@x>\nReferences: <4@x>\n\nhi"
    assert thread_candidates(scan(raw)) == (b"<3@x>", b"<2@x>", b"<4@x>", b"<1@x>")
