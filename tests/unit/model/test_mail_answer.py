"""What counts as a person's answer, and whose it may be."""

from pathlib import Path

import pytest

from waypost.model.mail import Answer, answer, parse, scan, sender_matches

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "mail"


def mail(text: str, head: str = "") -> bytes:
    return f"From: boss@example.com\n{head}Content-Type: text/plain; charset=utf-8\n\n{text}".encode()


@pytest.mark.parametrize(
    "word", ["yes", "Yes.", "YES!!", "*ok*", "Ok,", "approve", "Approved:", "“yes”", "\ufeffyes", "\u00a0ok"]
)
def test_a_first_word_of_consent_approves(word: str) -> None:
    """People write it in every case and with every punctuation."""
    assert answer(mail(f"\n\n{word} go on")) == Answer(approved=True, comment="go on")


@pytest.mark.parametrize("word", ["no", "No,", "REJECT", "rejected."])
def test_a_first_word_of_refusal_rejects(word: str) -> None:
    """The same care as for consent."""
    assert answer(mail(f"{word}\nToo dear.")) == Answer(approved=False, comment="Too dear.")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "I say yes",
        "not approved",
        "yesterday I said no",
        "no-one should pay this",
        "yes/no?",
        "nope",
        "okay",
        "> yes",
        "> yes\n> no",
        "> yes\nI don't know",
        "Please see below:\nand tell me more\nbefore I can say\nyes or no:\n> Pay?\nyes",
        "See:\n\nyes",
        "- - - -",
    ],
)
def test_anything_else_is_no_answer(text: str) -> None:
    """The host acts on an answer: what isn't clearly one stays a mail for a person to write again."""
    assert answer(mail(text)) is None


@pytest.mark.parametrize(
    "quote",
    [
        "On Mon, 2 Nov 2026, expenses@example.com wrote:\n> Pay?\n> yes or no",
        "On Mon, 2 Nov 2026 at 09:31, Expenses\n<no@example.com> wrote:\n\n> Pay?",
        "On Monday\nno reply <expenses@example.com>\nwrote:\n> Pay?",
        "> Pay?",
    ],
)
def test_an_answer_below_the_quote_counts(quote: str) -> None:
    """Whoever answers below what they quote has still answered; the line that announces the quote says nothing."""
    assert answer(mail(f"{quote}\n\nyes\nplease\n")) == Answer(approved=True, comment="please")


def test_an_answer_above_a_quote_is_never_taken_for_its_announcement() -> None:
    """A refusal may end in a colon above a quote, as announcements do; the decision must not turn round."""
    assert answer(mail("No, because you write:\n> Pay?\n\nyes, I know")) == Answer(
        approved=False, comment="because you write:\n\nyes, I know"
    )


def test_the_comment_is_what_the_person_wrote() -> None:
    """Quotes, their announcement, signature and what is forwarded below aren't theirs."""
    text = "Yes - this once.\n\nBut ask before.\n\nOn Monday, x wrote:\n> Pay?\n\n-- \nThe Boss\nCEO"
    assert answer(mail(text)) == Answer(approved=True, comment="- this once.\n\nBut ask before.")
    text = "ok\n\n-----Original Message-----\nFrom: x\nPay?"
    assert answer(mail(text)) == Answer(approved=True, comment="")


def test_an_answer_in_html_only_counts() -> None:
    """Some phones write nothing else."""
    raw = b"From: b@x\nContent-Type: text/html\n\n<div>Yes, <b>do</b></div><blockquote><p>no</p></blockquote>"
    assert answer(raw) == Answer(approved=True, comment="do")
    assert answer(b"From: b@x\nContent-Type: text/html\n\n<blockquote>yes</blockquote>") is None


@pytest.mark.parametrize(
    "head", ["Auto-Submitted: auto-replied\n", "Return-Path: <>\n", "Content-Type: multipart/report; boundary=b\n"]
)
def test_a_program_answers_for_nobody(head: str) -> None:
    """An absence note that begins with a friendly word pays nothing."""
    assert answer(mail("OK, I'm back on Monday", head)) is None


def test_a_wish_for_no_automatic_reply_is_still_a_person() -> None:
    """Whole organisations set that field on every mail; their people's answers must count."""
    raw = mail("yes", "X-Auto-Response-Suppress: All\n")
    assert scan(raw).automatic
    assert answer(raw) is not None


def test_a_parsed_mail_and_its_bytes_give_one_answer() -> None:
    """Host and tests hold one or the other."""
    for name, approved in (("boss-yes.eml", True), ("boss-no.eml", False)):
        raw = (EXAMPLES / name).read_bytes()
        found = answer(raw)
        assert found == answer(parse(raw))
        assert found is not None
        assert found.approved is approved
        assert "wrote" not in found.comment


def test_only_the_one_named_may_answer() -> None:
    """The domain in any case, the rest to the letter; no sender, or two, match nobody."""
    who = ["Boss@Example.COM", "deputy@example.com"]
    assert sender_matches("Boss@example.com", who)
    assert sender_matches("deputy@EXAMPLE.com", who)
    assert not sender_matches("boss@example.com", who)
    assert not sender_matches("boss@example.com.evil.example", who)
    assert not sender_matches("x@straße.example", ["x@strasse.example"])
    assert not sender_matches("", ["", *who])
    assert not sender_matches(None, who)
    assert not sender_matches("deputy@example.com", [])


def test_the_door_looks_for_an_answer_only_in_a_reply_by_one_person() -> None:
    """A body is opened at the door only where a decision may be in it."""
    reply = mail("yes\nplease", "In-Reply-To: <1@x>\n")
    assert scan(reply).answer == Answer(approved=True, comment="please")
    assert scan(mail("yes")).answer is None
    assert scan(b"From: m@evil.example\n" + reply).answer is None
    assert scan(mail("perhaps", "References: <1@x>\n")).answer is None
