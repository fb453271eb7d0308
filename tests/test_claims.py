"""The table of claims is complete, and what it names is there and runs."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from noisy_jax.__main__ import main
from noisy_jax.claims import CLAIMS, STATUSES, Claim, counts, page

ROOT = Path(__file__).parent.parent
IDS = """
    DA-Protocol DA-Eq2/3 DA-Lemma3 DA-Identity DA-Lemma1 DA-Alg1-left DA-Thm1 DA-Lemma2
    DA-Alg1-right DA-Thm2 DA-Eq4 DA-Eq5 DA-Lemma4 DA-Alg2 DA-Def-β DA-Lemma5 DA-Lemma6 DA-Thm3
    DA-Thm4 DA-Eq6 DA-AppE-Eq16 DA-AppE-Eq17 DA-Thm5 DA-Lemma7 DA-Lemma8 DA-Lemma9 DA-Fig1 DA-short
    NK-Setting NK-Sec2 NK-Sec3.1 NK-Sec3.2 NK-Sec3.3 NK-Lemma1 NK-Sub1 NK-Lemma2 NK-Alg1 NK-Thm4
    NK-Eq2 NK-Sub2 NK-Lemma3 NK-Sub3 NK-Sub4 NK-Lemma4 NK-Thm1 NK-Eq6 NK-Sub5 NK-Sub6 NK-Sub7
    NK-Lemma6 NK-Lemma5 NK-Thm2 NK-tradeoff NK-Ex1 NK-Ex2 NK-Ex3 NK-Ex4 NK-Fig1 NK-Thm5 NK-Thm3
    NK-AppA
    NORMA-Eq2-5 NORMA-Eq6 NORMA-Eq7-9 NORMA-Eq10-12 NORMA-Fig1 NORMA-II.D-speedup NORMA-Prop1
    NORMA-offset NORMA-Eq13-16,18 NORMA-Eq17 NORMA-Eq19 NORMA-λ=1 NORMA-Eq20 NORMA-Eq21 NORMA-Eq22
    NORMA-Eq23 NORMA-Eq24 NORMA-adaptive-σ NORMA-Eq25-27 NORMA-IV.B NORMA-Eq30 NORMA-Eq31-32
    NORMA-Thm2 NORMA-Thm3 NORMA-IV.C NORMA-Lemma7 NORMA-Eq33-34 NORMA-Thm4 NORMA-Cor5 NORMA-Thm6
    NORMA-Fig2 NORMA-Fig2-repro NORMA-ALMA_2 NORMA-Fig3
    SQ-Def1 SQ-quantile SQ-subquantile SQ-minmax SQ-Lemma3 SQ-Lemma4 SQ-Alg1 SQ-Alg1-step SQ-descent
    SQ-Lemma20 SQ-Alg2 SQ-T SQ-Prop10 SQ-Prop11 SQ-Lemma12 SQ-Thm13 SQ-Fact14 SQ-Jensen SQ-Prop16
    SQ-Prop17 SQ-Thm18 SQ-Prop19 SQ-Lemma21 SQ-Prop22 SQ-Lemma23 SQ-Lemma24 SQ-Eq19 SQ-ζ SQ-Eqs13-14
    SQ-Eqs12,23 SQ-Thm5 SQ-Thm6 SQ-related
    EXT-Rescue1 EXT-Rescue3 EXT-CorrelatedNoise EXT-Symmetrised EXT-Cloning EXT-GeneralSigma
    EXT-IncrementalNorm EXT-HeteroscedasticAlg2 EXT-SingleCopyKernel EXT-FiniteMixture EXT-Measures
    EXT-LaplaceSurrogate EXT-GeneralNoise EXT-FourierParallelWorlds EXT-OptimalN EXT-Centre
    EXT-OptimalGauss EXT-FloorNumbers
"""
PASSED_OVER = ("skip", "skipif", "importorskip", "xfail", "slow")


def named(node, kind=ast.Attribute):
    """Attributes, or names, anywhere below: `slow` of `pytest.mark.slow`."""
    field = "attr" if kind is ast.Attribute else "id"
    return {getattr(part, field) for part in ast.walk(node) if isinstance(part, kind)}


def runs(root, shown):
    """Whether CI runs it: a notebook's section, or a test that no mark, of its file too, skips."""
    path, _, name = shown.partition("::")
    if path.endswith(".ipynb"):
        there = (root / path).is_file() and Path(path).parent == Path("colabs")
        return there and f'"## {name}. ' in (root / path).read_text("utf-8")
    if not path.startswith("tests/") or path.startswith("tests/benchmarks/"):
        return False
    if not Path(path).name.startswith("test_") or not (root / path).is_file():
        return False
    body = ast.parse((root / path).read_text(encoding="utf-8")).body
    defined = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    of_file = [
        node.value
        for node in body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    decorators = [decorator for node in defined for decorator in node.decorator_list]
    marked = set().union(
        *map(named, defined + of_file), *(named(mark, ast.Name) for mark in decorators)
    )
    return len(defined) == 1 and name.startswith("test_") and marked.isdisjoint(PASSED_OVER)


def test_every_claim_is_there_once():
    assert Counter(claim.id for claim in CLAIMS) == Counter(IDS.split())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_what_is_claimed_is_shown(claim):
    assert claim.status in STATUSES
    assert (claim.status == "derived here") == claim.id.startswith("EXT-")
    assert ", " in claim.source
    assert claim.statement.endswith(".")
    assert claim.reason.endswith(".") or claim.status in ("reproduced", "derived here")
    assert claim.shown_by or claim.status == "not computable"
    assert len(set(claim.shown_by)) == len(claim.shown_by)
    missing = [shown for shown in claim.shown_by if not runs(ROOT, shown)]
    assert not missing, f"{claim.id} names what is not there or is passed over: {missing}"


def test_what_does_not_run_is_found(tmp_path):
    (tmp_path / "tests" / "benchmarks").mkdir(parents=True)
    (tmp_path / "colabs").mkdir()
    text = "import pytest\n\n\ndef test_a(): ...\n\n\n{}\ndef test_b(): ...\n\n\ndef other(): ...\n"
    (tmp_path / "tests" / "test_x.py").write_text(text.format("@pytest.mark.parametrize('a', [1])"))
    (tmp_path / "tests" / "test_y.py").write_text(text.format("@pytest.mark.skipif(True)"))
    (tmp_path / "tests" / "test_z.py").write_text("pytestmark = pytest.mark.slow\n" + text[14:])
    (tmp_path / "tests" / "test_s.py").write_text(text.format("@slow"))
    (tmp_path / "tests" / "test_i.py").write_text("def test_a():\n    pytest.skip('no')\n")
    (tmp_path / "tests" / "benchmarks" / "test_x.py").write_text(text.format(""))
    (tmp_path / "colabs" / "a.ipynb").write_text('{"source": ["## 2. Title"]}')
    for shown in ("test_x.py::test_a", "test_x.py::test_b", "test_y.py::test_a"):
        assert runs(tmp_path, f"tests/{shown}")
    assert runs(tmp_path, "colabs/a.ipynb::2")
    for shown in (
        "tests/test_y.py::test_b",
        "tests/test_z.py::test_a",
        "tests/test_s.py::test_b",
        "tests/test_i.py::test_a",
        "tests/test_x.py::other",
        "tests/test_x.py::test_c",
        "tests/test_w.py::test_a",
        "tests/benchmarks/test_x.py::test_a",
        "tests/test_x.py",
        "colabs/a.ipynb",
        "colabs/a.ipynb::1",
        "colabs/b.ipynb::2",
        "elsewhere/a.ipynb::2",
    ):
        assert not runs(tmp_path, shown), shown


def test_notebooks_are_run():
    assert runs(ROOT, "tests/test_colabs.py::test_runs")  # all that lie in colabs/
    assert "pytest -m notebook tests/test_colabs.py" in (ROOT / ".ci/run").read_text("utf-8")


def test_page_lists_every_claim():
    rows = [line.split(" | ") for line in page(CLAIMS).splitlines() if line.startswith("| ")]
    listed = [row[0].removeprefix("| ") for row in rows if len(row) == 5]
    assert [name for name in listed if name != "id"] == [claim.id for claim in CLAIMS]
    assert listed.count("id") == len({claim.source.split(", ")[0] for claim in CLAIMS}) == 5
    for status, count in counts(CLAIMS):
        assert f"| {status} | {count} | {STATUSES[status]} |" in page(CLAIMS)
    made = Claim("A", "B, C", "corrected", "|x|.", ("tests/a.py::b", "colabs/c.ipynb::1"), "No.")
    expected = r"| A | C | corrected | \|x\|. No. | `tests/a.py::b`<br>`colabs/c.ipynb::1` |"
    assert page([made]).endswith(expected + "\n")


def test_command_prints_and_saves_the_statuses_asked_for(tmp_path, capsys):
    assert main(["claims", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert f"\n{len(CLAIMS)} claims: " in printed
    assert (tmp_path / "claims.md").read_text(encoding="utf-8") == page(CLAIMS)
    wanted = ["contradicted", "not computable"]
    assert main(["claims", "--status", *wanted, "--out", str(tmp_path)]) == 0
    chosen = [claim for claim in CLAIMS if claim.status in wanted]
    lines = capsys.readouterr().out.splitlines()[: len(chosen)]
    assert [line.split()[0] for line in lines] == [claim.id for claim in chosen]
    assert (tmp_path / "claims.md").read_text(encoding="utf-8") == page(chosen)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--status", "wrong"], "--status must be any of reproduced, corrected, contradicted, not"),
        (["--out", f"{__file__}/below"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["claims", *arguments]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
