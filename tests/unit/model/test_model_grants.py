"""What steps are granted: one form on disk, hashes that are computed again, and questions that never guess."""

import hashlib

import pytest
from msgspec import UNSET

from waypost.model import grants as model
from waypost.model.errors import Invalid
from waypost.model.grants import RUN, StepGrants, granted

TWO = {
    RUN: granted(mail=["boss@Example.com"], secrets=["ledger"]),
    "fetch": granted(secrets=["github", "ledger"], children=["billing"]),  # of before there were child runs
}


def test_the_bytes_of_a_file_are_its_canonical_json() -> None:
    """So that a step's content hash is the hash of its file, for whoever has only a clone."""
    raw = model.encode(granted(mail=["b@x.example", "*@Example.COM", "b@X.example"], secrets=["s"]))
    assert raw == b'{"mail":["*@example.com","b@x.example"],"secrets":["s"]}'
    assert model.encode(model.decode(raw)) == raw
    assert model.content_hash(model.decode(raw)) == hashlib.sha256(raw).hexdigest()


def test_nothing_said_of_mail_is_not_the_same_as_nobody() -> None:
    """The first is what the workflow declares, the second is an operator's word."""
    assert model.encode(granted()) == b"{}"
    assert model.encode(granted(mail=[])) == b'{"mail":[]}'
    assert model.decode(b"{}").mail is UNSET
    assert model.decode(b'{"mail":[]}').mail == ()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b'{"secrets":["b","a"]}',
        b'{"secrets":["a","a"]}',
        b'{"secrets":[]}',
        b'{ "secrets":["a"]}',
        b'{"secrets":["a"],"mail":[]}',
        b'{"secrets":["a b"]}',
        b'{"secrets":[""]}',
        b'{"mail":["nobody"]}',
        b'{"mail":["a@EXAMPLE.com"]}',
        b'{"mail":["*"]}',
        b'{"mail":["*@*.example"]}',
        b'{"mail":["*@example"]}',
        b'{"mail":["a*@example.com"]}',
        b'{"mail":null}',
        b'{"children":["Not A Name"]}',
        b'{"files":["/"]}',
        b'{"grants":[]}',
        b'{"secrets":["\xff"]}',
        b'{"secrets":["' + b"a" * 20_000 + b'"]}',
        b"[" * 5000,
    ],
)
def test_a_file_in_any_other_form_is_no_grant(raw: bytes) -> None:
    """Taken for nothing it would hide what somebody meant, taken for something it would be a guess."""
    with pytest.raises(Invalid):
        model.decode(raw)


def test_a_snapshot_is_believed_only_where_every_hash_is_right() -> None:
    """Of each step and of the whole: whoever passes it on could have changed either."""
    taken = model.snapshot(TWO)
    raw = model.encode_snapshot(taken)
    sha256 = hashlib.sha256(raw).hexdigest()
    assert model.read_snapshot(raw, sha256) == taken
    assert [each.step_id for each in taken.steps] == [RUN, "fetch"]
    assert raw.startswith(b'{"steps":[{"contentHash":"')
    assert b'"stepId":"@run"' in raw
    for bad in (
        raw.replace(b"github", b"gitlab"),
        raw.replace(b"billing", b"killing"),
        raw.replace(b'"stepId":"fetch"', b'"stepId":"@run"'),
        raw.replace(b"{", b"[", 1),
    ):
        with pytest.raises(Invalid):
            model.read_snapshot(bad, hashlib.sha256(bad).hexdigest())
    with pytest.raises(Invalid, match="aren't those of"):
        model.read_snapshot(raw, "0" * 64)
    with pytest.raises(Invalid, match="it may have"):
        model.read_snapshot(b" " * (model.SNAPSHOT + 1), sha256)


def test_what_the_run_is_granted_holds_for_its_steps_and_not_the_other_way_round() -> None:
    """A secret of one step is that step's: another one that asks for it is refused."""
    taken = model.snapshot(TWO)
    assert model.may_read(taken, "fetch", "github")
    assert model.may_read(taken, "fetch", "ledger")
    assert model.may_read(taken, "pay", "ledger")
    assert not model.may_read(taken, "pay", "github")
    assert not model.may_read(taken, RUN, "github")
    assert not model.may_read(model.NONE_GRANTED, "fetch", "github")
    assert model.readable(taken, ["fetch", "pay"]) == {"fetch": ("github", "ledger"), "pay": ("ledger",)}
    assert model.readable(model.NONE_GRANTED, ["fetch"]) == {}
    asked = (("fetch", "github"), ("pay", "ledger"), ("pay", "github"))
    assert model.missing(taken, asked) == (("pay", "github"),)


@pytest.mark.parametrize(("children", "may"), [(None, True), ([], False), (["pay"], True), (["ask"], False)], ids=str)
def test_a_child_may_be_started_until_an_operator_says_which(children: list[str] | None, may: bool) -> None:  # noqa: FBT001 - a table
    """As for mail: whoever deploys the code has read what it starts, and a list of an operator's is the last word."""
    run = granted() if children is None else granted(children=children)
    assert model.may_start(model.snapshot({RUN: run}), "pay") is may
    assert model.may_start(model.snapshot({"fetch": granted(children=[])}), "pay"), "a step's word isn't the run's"


def test_to_give_or_take_a_child_begins_with_what_the_code_declares() -> None:
    """To take one away must leave the others, and a grant of something else says nothing of children."""
    declared = ("ask", "pay")
    less = model.taken_back(StepGrants(), granted(children=["pay"]), (), declared)
    assert less.children == ("ask",)
    assert model.given(less, granted(children=["pay"]), (), declared).children == declared
    assert model.given(StepGrants(), granted(secrets=["s"]), (), declared).children is UNSET
    assert model.encode(less) == b'{"children":["ask"]}'
    assert model.encode(granted(children=[])) == b'{"children":[]}'


@pytest.mark.parametrize("name", ["", "a b", "x" * 201, "a\n", "a\u202e"])
def test_what_can_name_no_function_is_no_child_workflow(name: str) -> None:
    """What can't be written in a table, or told apart in one, is granted to nobody."""
    with pytest.raises(Invalid, match="no name of a child workflow"):
        granted(children=[name])


@pytest.mark.parametrize(
    ("allowed", "address", "may"),
    [
        (["a@x.example"], "a@X.EXAMPLE", True),
        (["a@x.example"], "A@x.example", False),
        (["*@x.example"], "anybody@X.example", True),
        (["*@x.example"], "anybody@y.x.example", False),
        (["*@x.example"], "anybody@xx.example", False),
        (["*@x.example"], "@x.example", False),
        (["*@x.example"], "x.example", False),
        ([], "a@x.example", False),
        (["a@x.example"], "", False),
    ],
)
def test_a_pattern_is_everybody_of_exactly_one_domain(allowed: list[str], address: str, may: bool) -> None:  # noqa: FBT001 - a table
    """A suffix that matched more would grant what nobody sees in it."""
    assert model.may_mail(allowed, address) is may


def test_to_give_or_take_mail_begins_with_what_the_workflow_declares() -> None:
    """To add one address must not silently take the others away, and to take one away must leave the others."""
    declared = ["boss@example.com", "cfo@example.com", "*@example.com"]
    more = model.given(StepGrants(), granted(mail=["x@example.com"]), declared)
    assert more.mail == ("boss@example.com", "cfo@example.com", "x@example.com")
    less = model.taken_back(StepGrants(), granted(mail=["boss@example.com"]), declared)
    assert less.mail == ("cfo@example.com",)
    assert model.given(StepGrants(), granted(secrets=["s"]), declared) == granted(secrets=["s"])
    assert model.taken_back(less, granted(mail=["cfo@example.com"]), declared).mail == ()
    assert model.taken_back(granted(secrets=["s", "t"]), granted(secrets=["t", "u"]), ()) == granted(secrets=["s"])
