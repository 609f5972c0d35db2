"""Values that were delivered, found and hidden in what leaves."""

import json
import pprint
import textwrap
import traceback
import tracemalloc
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.folding import SPREAD
from ipc.masking import KEPT, LEAST, NOTHING, Stream

TOKEN = b'gh"p_A1\nb2/c3'
MASK = NOTHING.learned({"github": TOKEN, "db": b"correct horse", "db2": b"correct horse battery", "e": b"erect hor"})


def test_a_value_is_replaced_by_the_name_of_its_handle() -> None:
    """Whoever reads it must still know what stood there."""
    assert MASK.hidden(b"Bearer " + TOKEN + b"!") == b"Bearer [secret github]!"
    assert MASK.hidden_text("user:correct horse@db") == "user:[secret db]@db"


def test_a_value_is_found_as_json_writes_it_too() -> None:
    """Results and args of errors are JSON by the time that they are looked at."""
    assert MASK.found(json.dumps({"t": TOKEN.decode()}).encode()) == "github"
    assert MASK.found(b'{"t":"nothing"}') == ""


KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n\n  9w0BAQEFAASCBKcwggSj\n-----END KEY-----"


def test_a_value_of_several_lines_is_found_where_they_were_made_one() -> None:
    """A line of progress is one, whatever a step gives: a key that it names went to the history, with blanks in it."""
    mask = NOTHING.learned({"pem": KEY.encode(), "blanks": b" " * 20})
    assert mask.hidden_text(f"using {' '.join(KEY.split())}.") == "using [secret pem]."
    assert mask.hidden_text("nothing") == "nothing"
    shown = "".join(traceback.format_exception(ExceptionGroup("two", [ValueError(KEY), ValueError(2)])))
    hidden = mask.hidden_text(shown)
    assert "ValueError: [secret pem]" in hidden
    assert not any(line in hidden for line in KEY.split())


@pytest.mark.parametrize("left_out", ["", "[…]"])
def test_a_value_at_which_a_text_was_cut_is_hidden_as_far_as_it_is_there(left_out: str) -> None:
    """Long texts are kept in part, and the cut may go through a value: what is left is most of it."""
    mask = NOTHING.learned({"pem": KEY.encode()})
    assert mask.hidden_text(f"a client with {KEY[:40]}{left_out}") == f"a client with [secret pem]{left_out}"
    assert mask.hidden_text(f"{left_out}{KEY[-40:]} is wrong") == f"{left_out}[secret pem] is wrong"
    assert mask.hidden_text(f"{left_out}{KEY[9:60]}{left_out}").count(KEY[20:50]) == 1, (
        "a piece out of its middle isn't"
    )
    assert mask.hidden_text(f"-----BEGIN{left_out}") == f"-----BEGIN{left_out}", "so do many"
    assert mask.hidden_text(left_out) == left_out


INDENTED = KEY.replace("\n", "\n  | ")


@pytest.mark.parametrize(
    "written",
    [
        lambda text: textwrap.indent(text, "    "),
        lambda text: textwrap.indent(text, "> "),
        lambda text: "".join(traceback.format_exception(ExceptionGroup("g", [ValueError(text), ValueError(2)]))),
        lambda text: pprint.pformat({"key": text, "more": text}, width=30),
        lambda text: json.dumps(textwrap.indent(text, "    ")),
        lambda text: json.dumps({"body": json.dumps({"key": text})}),
        lambda text: json.dumps(str({"key": text})),
    ],
    ids=["indented", "quoted", "group", "pretty", "indented in json", "json in json", "repr in json"],
)
def test_a_value_of_several_lines_is_found_however_it_is_written(written: Callable[[str], str]) -> None:
    """Each way out asks the same: a log got the lines of a key that an error of a group had, progress didn't."""
    mask = NOTHING.learned({"pem": KEY.encode(), "short": b"a\n\n\n\n\n\nb"})
    said = f"a b, {written(KEY)}."
    shown = mask.hidden(said.encode()).decode()
    assert mask.found(said.encode()) == "pem"
    assert not any(line in shown for line in KEY.split("\n") if line)
    assert "[secret pem]" in shown
    assert "a b, " in shown, "of few bytes, made flat: not looked for"


LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def of_bytes(text: str) -> str:
    return repr(text.encode())


@pytest.mark.parametrize(
    "written",
    [
        str,
        repr,
        ascii,
        json.dumps,
        lambda text: json.dumps(json.dumps(text)),
        of_bytes,
        lambda text: repr(of_bytes(text)),
    ],
)
@pytest.mark.parametrize("end", LINE_ENDS, ids=ascii)
def test_each_line_end_that_python_knows_may_stand_between_two_words(end: str, written: Callable[[str], str]) -> None:
    """A text that came from a page of the web, or was split and joined, is the same key."""
    mask = NOTHING.learned({"pem": KEY.encode()})
    said = f"with {written(end.join(KEY.split()))}.".encode()
    for cut in range(1, len(said)):
        stream = Stream()
        shown = stream.feed(said[:cut], mask) + stream.feed(said[cut:], mask) + stream.feed(b"", mask)
        assert shown == mask.hidden(said)
        assert b"[secret pem]" in shown


def test_many_backslashes_after_a_word_of_a_value_are_looked_at_once() -> None:
    """A host stood still for minutes over 64 KiB of them; now it takes as long for as many of anything."""
    mask = NOTHING.learned({"pem": KEY.encode()})
    said = b"-----BEGIN " + b"\\" * 200_000 + b"."
    assert mask.hidden(said) == said
    assert not mask.found(said)


def test_an_indented_value_at_which_a_text_was_cut_is_hidden_as_far_as_it_is_there() -> None:
    """The end of a long traceback is kept, and a group of errors may have a key where it is cut."""
    mask = NOTHING.learned({"pem": KEY.encode()})
    assert mask.hidden_text(f"[…]{INDENTED[-70:]} is wrong") == "[…][secret pem] is wrong"
    assert mask.hidden_text(f"with {INDENTED[:60]}[…]") == "with [secret pem][…]"
    assert mask.hidden_text("[…]a text[…]") == "[…]a text[…]"


@given(st.integers(0, len(INDENTED)), st.integers(0, len(INDENTED)))
def test_a_stream_hides_an_indented_value_however_it_is_cut(one: int, other: int) -> None:
    """As for a value that stands there as it is."""
    mask, stream, whole = NOTHING.learned({"pem": KEY.encode()}), Stream(), f"a {INDENTED} b".encode()
    first, second = sorted((one, other))
    parts = filter(None, (whole[:first], whole[first:second], whole[second:]))
    shown = b"".join(stream.feed(part, mask) for part in parts)
    assert shown + stream.feed(b"", mask) == b"a [secret pem] b"


def test_who_prints_blanks_for_ever_after_the_first_word_of_a_value_is_not_kept_for_ever() -> None:
    """The host's memory is bounded, whatever a child prints."""
    mask = NOTHING.learned({"pem": KEY.encode()})
    said = b"-----BEGIN" + b" " * SPREAD * len(KEY)
    assert mask.settled(said) == len(said)


ODD = "p\u00e4ss'w\"ord/+\x1b &x"


@pytest.mark.parametrize(
    "written",
    [json.dumps, repr, ascii, lambda text: repr(text.encode()), quote, quote_plus, lambda text: quote(text, safe="")],
    ids=["json", "repr", "ascii", "bytes", "quote", "quote_plus", "quote all"],
)
def test_a_value_is_found_as_errors_write_it(written: Callable[[str], str]) -> None:
    """A client that can't reach its server says the URL, of which the token is a part; others show an argument."""
    mask = NOTHING.learned({"odd": ODD.encode()})
    said = f"can't reach https://x.example/?key={written(ODD)}."
    assert mask.found(said.encode()) == "odd"
    assert mask.found(json.dumps(said).encode()) == "odd", "a result is written once more"
    assert "ss" not in mask.hidden_text(said).removeprefix("can't reach https://x.example/?key=")


def test_a_value_that_begins_another_one_leaves_nothing_of_the_longer_one() -> None:
    """The rest of it would be a good part of a secret."""
    both = NOTHING.learned({"short": b"12345678", "long": b"12345678-and-more"})
    assert both.hidden(b"12345678-and-more 12345678") == b"[secret long] [secret short]"


def test_a_value_of_a_few_bytes_is_not_looked_for() -> None:
    """A PIN would be found in every number; the page of credentials says so."""
    assert NOTHING.learned({"pin": b"1" * (LEAST - 1)}).hidden(b"1" * 20) == b"1" * 20


def test_a_value_that_was_replaced_stays_hidden_and_not_for_ever() -> None:
    """It may still be valid; memory must not grow with every rotation all the same."""
    mask = MASK
    for each in range(KEPT):
        mask = mask.learned({"github": b"value-%06d" % each})
    assert mask.found(b"value-%06d" % (KEPT - 1)) == "github"
    assert mask.found(b"value-000000") == "github"
    assert not mask.found(TOKEN)


def test_every_value_that_is_in_use_is_hidden_however_many_there_are() -> None:
    """Only those that were replaced are forgotten some day."""
    many = {f"h{n}": b"value-%06d" % n for n in range(3 * KEPT)}
    mask = NOTHING.learned(many).learned(many)
    assert all(mask.found(value) == name for name, value in many.items())


def test_no_repr_shows_a_value() -> None:
    """It may stand in a traceback of ours."""
    assert repr(MASK) == "Mask(4 values)"


def test_text_with_a_lone_surrogate_stays_what_it_is() -> None:
    """The text of an error may have one; hiding must not raise in place of it."""
    assert MASK.hidden_text("a\udc80 correct horse") == "a\udc80 [secret db]"


@given(
    st.lists(
        st.sampled_from([TOKEN, TOKEN[:5], TOKEN[5:], b"correct ", b"horse", b" battery", b"rect hor", b"\n"]),
        max_size=8,
    ),
    st.data(),
)
def test_a_stream_hides_a_value_however_it_is_cut(parts: list[bytes], data: st.DataObject) -> None:
    """A pipe cuts anywhere; the sum of what is shown is what would be shown of the whole."""
    whole = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    stream, shown = Stream(), b""
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        if begin < end:
            shown += stream.feed(whole[begin:end], MASK)
    shown += stream.feed(b"", MASK)
    assert shown == MASK.hidden(whole)


@pytest.mark.parametrize("tail", [b"", b"corre", TOKEN[:1]])
def test_a_stream_lets_go_of_all_it_has_at_its_end(tail: bytes) -> None:
    """The last words of a child that died are the ones that somebody reads."""
    stream = Stream()
    assert stream.feed(b"last words: " + tail, MASK) + stream.feed(b"", MASK) == b"last words: " + tail


ACCOUNT = json.dumps({"type": "service_account", "id": "x", "key": "MIIEvQ\nBADANB\n"}, indent=2).encode()


@pytest.mark.parametrize("filling", [b'{"type": "order", "n": [1, 2]}, ', b"{" + b" " * 20], ids=["json", "blanks"])
def test_a_large_value_costs_no_more_than_itself_whatever_the_secret_begins_with(filling: bytes) -> None:
    """The key of a service begins with a brace, as each result does: one of 64 MiB took a minute, and 5 GiB."""
    mask, data = NOTHING.learned({"key": ACCOUNT}), filling * (1024 * 1024 // len(filling))
    quoted = data + b"\n> ".join(ACCOUNT.splitlines())
    assert not any(map(mask.found, (ACCOUNT.replace(b"vQ", b"vQx"), ACCOUNT.replace(b"NB", b"NC"))))
    tracemalloc.start()
    assert not mask.found(data)
    assert mask.found(quoted) == "key"
    assert tracemalloc.get_traced_memory()[1] < 3 * len(data)
    tracemalloc.stop()


@pytest.mark.parametrize("word", ["ga\\mma", "ga£mma", "ga€mma", "ga\\u20mma", "gamma\\"])
def test_a_stream_that_is_cut_where_a_line_end_may_begin_keeps_what_may_be_of_a_word(word: str) -> None:
    """A backslash, or the first byte of a letter."""
    value = f"alpha beta {word} delta".encode()
    mask, shown = NOTHING.learned({"h": value}), value.replace(b" ", b"\n    ")
    for cut in range(1, len(shown)):
        stream = Stream()
        pieces = [stream.feed(each, mask) for each in (shown[:cut], shown[cut:], b"")]
        assert b"".join(pieces) == b"[secret h]", cut
