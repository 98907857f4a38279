"""docs/performance.md has the figures that the benchmarks record, in the form in which they write them."""

import datetime
import re

import pytest

from autograder import __version__
from benchmarks import one_batch, performance

PAGE = performance.PAGE.read_text()
RECORDS = sorted(file.stem for file in performance.FIGURES.glob("*.json"))


@pytest.mark.parametrize("name", RECORDS)
def test_the_page_has_the_recorded_figures(name):
    assert performance.section(name) in PAGE


def test_each_section_names_the_command_that_wrote_its_figures():
    sections = re.split(r"^## ", PAGE, flags=re.M)[1:]
    texts = [re.split(r"^### Figures of `benchmarks\.(\w+)`$", section, flags=re.M) for section in sections]
    assert sorted(name for _, name, _ in texts) == RECORDS
    assert [name for text, name, _ in texts if not re.search(rf"python\s-m\sbenchmarks\.{name}\b", text)] == []


def test_no_measured_figure_is_outside_the_sections_of_figures():
    written = re.sub(r"^### Figures of .*?(?=^## |\Z)", "", PAGE, flags=re.M | re.S)
    assert len(written) > 4000
    assert re.findall(r"\d[\d.,]* ?(?:%|(?:CPU )?(?:k|m|µ|M|G)?[sB]\b|(?:CPU )?seconds|times)", written) == []


def test_record_replaces_figures_with_date_and_version(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(performance, "FIGURES", tmp_path)
    monkeypatch.setattr(performance, "PAGE", tmp_path / "page.md")
    performance.PAGE.write_text("# Page\n\n## Waiting\n\nText.\n\n## Another\n\nMore text.\n")
    performance.record("serve_flood", {"alone": 0.25})
    performance.record("serve_flood", {"alone": 3.0, "next to 5 new empty folders": 4.0})
    page = performance.PAGE.read_text()
    assert page.startswith("# Page\n\n## Waiting\n\nText.\n\n## Another\n\nMore text.\n\n### Figures of ")
    of_run = (
        rf"on {datetime.date.today()} with version {re.escape(__version__)}; machine: \d+ cores, .+; load: \d+\.\d\."
    )
    assert re.search(of_run, page)
    assert page.endswith("| alone | 3.00 |\n| next to 5 new empty folders | 4.00 |\n")
    assert "0.25" not in page
    assert page.count("### Figures") == 1
    assert "| alone | 3.00 |" in capsys.readouterr().out


def test_a_section_replaces_the_one_with_its_heading():
    page = performance.with_section("# Page\n", "## One", "## One\n\n1\n")
    page = performance.with_section(page, "## Two", "## Two\n\n2\n")
    assert page == "# Page\n\n## One\n\n1\n\n## Two\n\n2\n"
    assert performance.with_section(page, "## One", "## One\n\n3\n") == "# Page\n\n## One\n\n3\n\n## Two\n\n2\n"


def test_each_stage_of_a_batch_is_measured_by_methods_that_exist():
    methods = [(owner, name) for owner, names in one_batch.STAGES.values() for name in names]
    assert len(methods) > 5
    assert [name for owner, name in methods if not callable(getattr(owner, name, None))] == []
