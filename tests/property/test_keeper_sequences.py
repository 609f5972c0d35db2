"""The keeper of credentials under any sequence of what can happen to it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors.credentials import Assembled, NotAssembled
from ipc.deliveries import CredentialsUpdated, handles_of
from waypost.acting import Asked
from waypost.host.credentials.file import Configured
from waypost.host.credentials.logic import PATIENCE
from waypost.host.credentials.messages import Supply, TryCredentials
from waypost.host.credentials.providers import Failed
from waypost.host.credentials.reloading import SHORT
from waypost.testing.keeping import CONFIGURED, Bench, answers, credential, replies, supplies

FILES = (
    CONFIGURED,
    Configured({"github": credential("github", "ELSEWHERE"), "db": credential("db", refresh=30.0)}),
    Configured({"db": credential("db")}),
)
HANDLES = st.lists(st.sampled_from(["github", "db"]), max_size=2, unique=True).map(tuple)
STEPS = st.one_of(
    st.tuples(st.just("want"), st.sampled_from(["orders", "billing"]), HANDLES),
    st.tuples(st.just("read"), st.sampled_from(["github", "db"]), st.sampled_from(["v1", "v2", "v3", ""])),
    st.tuples(st.just("reload"), st.sampled_from([("orders",), ("orders", "billing"), ()])),
    st.tuples(st.just("file"), st.sampled_from(FILES)),
    st.tuples(st.just("answer")),
    st.tuples(st.just("wake"), st.sampled_from([1.0, 30.0, 60.0])),
    st.tuples(st.just("try")),
)


def _step(bench: Bench, step: tuple[Any, ...], token: int) -> list[Any]:
    match step:
        case "want", deployment, handles:
            return bench.want(deployment, pay=handles)
        case "read", handle, value:
            return bench.read({handle: value or Failed("away")})
        case "reload", deployments:
            return bench.reload(*deployments, token=token)
        case "file", found:
            return bench.file(found)
        case "answer", *_:
            return bench.answer()
        case "wake", seconds:
            return bench.wake(seconds)
        case _:
            return bench.take(Asked(token, TryCredentials()))


@given(st.lists(STEPS, max_size=25))
def test_everybody_is_answered_once_and_given_what_they_asked_for_and_may_have(steps: list[tuple[Any, ...]]) -> None:
    """And of two deliveries to one deployment that differ, the later one has the higher number."""
    bench = Bench()
    bindings: dict[str, Any] = {}
    given: dict[str, CredentialsUpdated] = {}
    wanted = asked = 0
    effects: list[Any] = []
    for token, step in enumerate(steps, 1):
        if step[0] == "want":
            wanted += 1
            bindings[step[1]] = {"pay": step[2]}
        asked += step[0] in {"reload", "try"}
        now = _step(bench, step, token)
        effects += now
        for each in (*answers(now), *supplies(now)):
            if isinstance(each, NotAssembled):
                continue
            assert isinstance(each, Assembled | Supply)
            to = {id(ref): name for name, ref in bench.refs.items()}
            names = [to[id(each.supervisor)]] if isinstance(each, Supply) else []
            for name in names:
                credentials = each.credentials
                allowed = {h for h, c in bench.state.configured.credentials.items() if c.is_for(name)}
                assert set(credentials.materials) <= allowed.intersection(handles_of(bindings.get(name, {})))
                before = given.get(name)
                assert before is None or before.serial < credentials.serial or before == credentials
                given[name] = credentials
    for _ in range(4):  # whatever is still under way ends, or runs out of time
        effects += bench.file(CONFIGURED)
        effects += bench.read({"github": "end", "db": "end"})
        effects += bench.answer()
        effects += bench.wake(PATIENCE + SHORT)
    assert sorted(each.correlation for each in answers(effects)) == list(range(1, wanted + 1))
    assert len(replies(effects)) == asked
