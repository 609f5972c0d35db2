"""Benchmarks are programs that people run by hand; here each runs at a tiny size, so that none of them rots.

No figure is looked at: what is fast is for somebody who sees what else the machine does.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import benchmarks
from benchmarks.__main__ import ALL, main
from benchmarks.figures import steady

ROOT = Path(benchmarks.__path__[0])
HELPERS = {"__init__", "__main__", "figures", "repositories", "served"}
OTHERS = {"torture"}
"""Run by a test of their own."""
QUICK = {
    "deployments": "2",
    "merging": "200",
    "mixed": "60",
    "rules": "20",
    "sealed": "3",
    "stalls": "1",
    "timers": "70",
    "top": "40",
    "weight": "32",
    "why": "40",
}
SLOW = {
    "append": "20",
    "dormancy": "3",
    "growth": "8",
    "mail": "2",
    "many_runs": "65",
    "opening": "200",
    "processes": "1",
    "supervision": "2",
}
"""They start hosts, write some hundred times as a warm-up, or do much work for each of the count."""


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A benchmark sets the interpreter and its core as a host does, and starts its helpers from where the tree is."""
    monkeypatch.chdir(ROOT.parent)
    interval, cores = sys.getswitchinterval(), os.sched_getaffinity(0)
    yield
    sys.setswitchinterval(interval)
    os.sched_setaffinity(0, cores)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    main()


def test_every_program_has_a_name_and_a_size_here() -> None:
    """One that nobody can call by its name, or that no test runs, is as good as gone."""
    programs = {path.stem for path in ROOT.glob("*.py")} - HELPERS - OTHERS
    assert programs == set(ALL) == QUICK.keys() | SLOW.keys()


@pytest.mark.parametrize("name", sorted(QUICK))
def test_a_benchmark_runs_to_its_end(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With the same parts as at full size: a change of an interface that it uses shows here."""
    where = [] if name == "rules" else ["--folder", str(tmp_path)]
    run(monkeypatch, name, "--count", QUICK[name], *where)
    assert any(character.isdigit() for character in capsys.readouterr().out)


@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_benchmark_of_whole_hosts_can_be_loaded_and_scaled_down(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its imports hold, and it has the option that all have."""
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, name, "--help")
    assert ended.value.code == 0
    assert "--count" in capsys.readouterr().out


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_benchmark_of_whole_hosts_runs_to_its_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for those that take seconds even at their smallest."""
    run(monkeypatch, name, "--count", SLOW[name])


def test_a_name_that_no_benchmark_has_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than that all are run."""
    with pytest.raises(SystemExit, match="there is no benchmark 'apend'"):
        run(monkeypatch, "apend")


@pytest.mark.parametrize(("later", "rejected"), [(1.0, False), (1.2, False), (0.85, False), (1.3, True), (0.7, True)])
def test_a_run_whose_disk_became_another_is_rejected(
    later: float, capsys: pytest.CaptureFixture[str], *, rejected: bool
) -> None:
    """Its halves are of two machines, and a ratio over both says nothing of ours."""
    steady([1.0, 1.0, 9.0, *[later] * 3])
    assert ("REJECTED" in capsys.readouterr().out) is rejected
