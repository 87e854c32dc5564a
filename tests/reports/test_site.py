"""Several notebooks published together: none stops the others, and the index says what each page is."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.reports import Reported, publish, report_all, run_notebook
from agentbench_lab.reports.index import write_index

from ..doing import lab
from ..drawing import NASTY, executed, report, strip
from .test_execute import notebook
from .test_html import Page


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own with two notebooks; the second fails unless it is let."""
    (tmp_path / "data" / "cases").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    made(tmp_path, "b_good", "print('all is well')")
    made(tmp_path, "a_bad", "from pathlib import Path\nprint(Path('let').read_text(encoding='utf-8'))")
    return tmp_path


def made(project: Path, name: str, cell: str) -> Path:
    return notebook(project / "notebooks" / f"{name}.ipynb", cell, parameters="k: int = 1")


def articles(index: Path) -> dict[str, str]:
    """What the index says of each report, as HTML."""
    text = index.read_text(encoding="utf-8")
    return dict(re.findall(r'<article class="entry" data-report="([^"]*)"(.*?)</article>', text, re.DOTALL))


def test_one_that_fails_does_not_stop_the_others(project: Path) -> None:
    """It is told with its cell, listed without a page, and kept; the other is published, and the index counts both."""
    seen: list[Reported] = []
    done, index = report_all(each=seen.append)
    assert seen == done
    bad, good = done
    assert (bad.notebook, bad.page, good.problem) == ("a_bad", None, "")
    assert bad.problem.startswith("a_bad.ipynb: cell 1 failed: FileNotFoundError: ")
    assert good.page == project / "reports" / "b_good.html"
    assert index == project / "reports" / "index.html"
    listed = articles(index)
    assert "No report:" in listed["a_bad"]
    assert "cell 1 failed: FileNotFoundError" in listed["a_bad"]
    assert "<a " not in listed["a_bad"]
    assert 'href="b_good.html"' in listed["b_good"]
    assert "1 published report. Of 1 the last attempt failed." in Page(index).text
    assert (project / "notebooks" / "out-a_bad.failed.ipynb").is_file()


def test_an_older_page_stays_and_is_called_so_until_it_is_made_again(project: Path) -> None:
    """Also over an index that another report writes in between."""
    (project / "let").write_text("let", encoding="utf-8")
    report_all()
    page = project / "reports" / "a_bad.html"
    before = page.read_bytes()
    (project / "let").unlink()
    _, index = report_all(["a_bad"])
    assert page.read_bytes() == before
    assert "An older page:" in articles(index)["a_bad"]
    assert 'href="a_bad.html"' in articles(index)["a_bad"]
    publish(run_notebook("b_good", project / "notebooks" / "out.ipynb", {}))
    assert "An older page:" in articles(index)["a_bad"]
    (project / "let").write_text("let", encoding="utf-8")
    report_all(["a_bad"])
    assert "An older page:" not in articles(index)["a_bad"]


def test_what_cannot_be_asked_is_said_before_anything_runs(project: Path) -> None:
    """A notebook that is not there, and two that would write one page."""
    with pytest.raises(LabError, match="did you mean 'b_good'"):
        report_all(["b_good", "b_goood"])
    other = made(project / "other", "b_good", "1")
    with pytest.raises(LabError, match=r"'b_good' stands twice: both would be b_good\.html"):
        report_all(["b_good", other])
    assert not (project / "reports").exists()
    (project / "file").write_text("", encoding="utf-8")
    with pytest.raises(LabError, match="cannot write there"):
        report_all(["b_good"], folder=project / "file" / "x")


def test_notebooks_of_one_call_do_not_see_each_other(project: Path) -> None:
    """What the first assigns is not there for the second; isolated, they do not even share a process."""
    made(project, "b_good", "left = 1\nimport os\nos.environ['AGENTBENCH_LAB_B'] = '1'\nprint(os.getpid())")
    made(
        project,
        "c_next",
        "import os\nprint('left' in globals(), 'AGENTBENCH_LAB_B' in os.environ, os.getpid())",
    )
    for isolated in (False, True):
        done, _ = report_all(["b_good", "c_next"], isolated=isolated)
        first, second = (Page(one.page).text for one in done if one.page is not None)
        found = re.search(r"False False (\d+)", second)
        assert found is not None
        assert (found[1] in first) is not isolated


def test_side_by_side_one_may_even_end_its_process(project: Path) -> None:
    """All others are published, in the order of their names, and the one that died is named with its cell."""
    made(project, "c_dies", "import os\nos._exit(1)")
    made(project, "d_good", "print('well too')")
    done, _ = report_all(jobs=2)
    assert [one.notebook for one in done] == ["a_bad", "b_good", "c_dies", "d_good"]
    assert [one.page is not None for one in done] == [False, True, False, True]
    assert done[0].problem.startswith("a_bad.ipynb: cell 1 failed: FileNotFoundError: ")
    assert done[2].problem.startswith("c_dies.ipynb: the kernel died in cell 1; kept as ")
    with pytest.raises(LabError, match="at least 1"):
        report_all(jobs=0)


def test_the_command_says_which_failed(project: Path) -> None:
    """Exit code 3, a line each; a mistake is 2 as everywhere."""
    done = lab("publish", cwd=project)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("failed: a_bad.ipynb: cell 1 failed: FileNotFoundError: ")
    lines = done.stdout.splitlines()
    assert re.fullmatch(r" +\d+\.\d\d s  reports/b_good\.html", lines[0])
    assert lines[1:] == ["index: reports/index.html (1 report made, 1 failed)"]
    assert lab("publish", "b_good", "--out", "site", cwd=project).returncode == 0
    assert (project / "site" / "index.html").is_file()
    wrong = lab("publish", "b_goood", cwd=project)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean 'b_good'" in wrong.stderr


def test_an_entry_has_claim_evidence_counts_and_a_picture(tmp_path: Path) -> None:
    """By question; what a case says is text also in the picture's words, and a large picture is drawn into pixels."""
    publish(report(tmp_path / "o.ipynb", strip(drivers=(NASTY,))), tmp_path / "small.html")
    from agentbench_lab import charts

    many = charts.outcomes(strip(cases=33))
    publish(executed(tmp_path / "p.ipynb", many), tmp_path / "large.html")
    index = write_index(tmp_path)
    found = Page(index)
    for said in (
        "How high?",
        "40 asked, 39 judged, 1 excluded, 0 missing",
        "simulated",
        "2026-11-29",
        "commit 0123abc",
    ):
        assert said in found.text, said
    assert found.count("script") == 0
    pictures = [said for tag, said in found.elements if tag == "img"]
    kinds = [re.match(r"data:image/(png|svg\+xml);base64,(.+)", said["src"]) for said in pictures]
    large, small = (found for found in kinds if found is not None)
    assert (large[1], small[1]) == ("png", "svg+xml")
    assert base64.b64decode(small[2]).startswith(b"<svg")
    assert b"<script" not in base64.b64decode(small[2])
    assert all(len(said["alt"]) > 20 for said in pictures)
    assert NASTY in pictures[1]["alt"]
    assert index.stat().st_size < 400_000
