"""README.md and docs/ agree with one another and with the sources."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from operator import itemgetter
from pathlib import Path

import fairseq
import pytest

from recipes.claims.compared import read_kept

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
}
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")
# a score with its interval, three ratios in a row, or a score: no coincidence
FIGURES = re.compile(r"\d+\.\d\d (?:\[.*?\]|± [\d.]+)|\d+\.\d\d(?:, \d+\.\d\d){2}|\b\d\d\.\d\d\b")
SOURCES = re.compile(r"`((?:fairseq_posenc|recipes|scripts|tests|findings)/[\w./-]+)`")
AN_EXAMPLE = "fairseq_posenc/encodings/power.py"  # which a reader writes
# options of programs that are neither ours nor fairseq's
FOREIGN = {"nproc_per_node", "to_json", "unsafe_deserialization"}


def slugs(text):
    """Names of a page's headings, as links have them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def tables(text):
    """A page's tables, as lists of rows of cells."""
    found = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    return [[row.strip("|\n").split("|") for row in table.splitlines()] for table in found]


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_lead_somewhere(page):
    for target, heading in LINK.findall(PAGES[page]):
        if target.startswith("https://"):
            continue
        path = (ROOT / page).parent.joinpath(target).resolve() if target else ROOT / page
        assert path.exists(), target
        assert not heading or heading in slugs(path.read_text(encoding="utf-8")), heading


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"docs/CHANGELOG.md"}))
def test_files_that_a_page_names_exist(page):
    for path in set(SOURCES.findall(PAGES[page])) - {AN_EXAMPLE}:
        assert (ROOT / path).exists(), path


def test_every_page_is_linked_and_every_picture_shown():
    targets = set()
    for page, text in PAGES.items():
        targets |= {(ROOT / page).parent.joinpath(link).resolve() for link, _ in LINK.findall(text)}
    files = {*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "gallery").iterdir()}
    assert not files - targets


def test_every_page_has_its_place_in_the_site_once():
    """The site itself is built by scripts/smoke.sh, where any warning is an error."""
    site = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r": ([\w/]+\.md)$", site, re.MULTILINE)
    expected = {page.partition("/")[2] for page in PAGES} - {""}
    # generated, and reached from a page
    expected.remove("claims_appendix.md")
    assert sorted(named) == sorted({*expected, "index.md", "commands.md", "api.md"})


def test_every_option_that_is_named_exists():
    tops = [ROOT / name for name in ("fairseq_posenc", "scripts", "recipes")]
    paths = [path for top in (*tops, Path(fairseq.__file__).parent) for path in top.rglob("*.*")]
    paths = [path for path in paths if path.suffix in (".py", ".sh")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    # an option stands in the source as such or as a field; those of encodings without position
    known = {word.replace("_", "-") for word in re.findall(r"\w[\w-]+", text)}
    for page, text in PAGES.items():
        for option in set(re.findall(r"(?<![\w-])--([a-z][\w-]*\w)", text)) - FOREIGN:
            name = option.replace("_", "-")
            assert {name, name.replace("position-", "")} & known, (page, option)


def test_formulas_and_options_of_encodings_are_those_of_their_docstrings(tmp_path):
    page = tmp_path / "encodings.md"
    page.write_text(PAGES["docs/encodings.md"], encoding="utf-8")
    command = [sys.executable, str(ROOT / "scripts" / "encodings_page.py"), str(page)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    assert page.read_text(encoding="utf-8") == PAGES["docs/encodings.md"]


def test_pythons_are_those_of_the_set_up():
    script = (ROOT / "scripts" / "setup.sh").read_text(encoding="utf-8")
    [order] = re.findall(r"^  for version in (3\.[\d. ]+); do", script, re.MULTILINE)
    versions = sorted(order.split())
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'requires-python = ">={versions[0]}' in metadata
    tested = (ROOT / "scripts" / "test_environments.sh").read_text(encoding="utf-8")
    assert f"versions=({' '.join(versions)})" in tested
    for page in ("README.md", "docs/CHANGELOG.md"):
        named = re.findall(r"\(Python ([\d., to]+)\)", PAGES[page])
        assert sorted(re.findall(r"3\.\d+", " ".join(named))) == versions


def test_a_figure_stands_in_one_file():
    pages = defaultdict(set)
    for page, text in PAGES.items():
        # README's figures are held to their pages below, and claims are what a recipe wrote
        others = not page.startswith(("docs/claims", "README"))
        for figure in FIGURES.findall(text) if others else ():
            pages[figure].add(page)
    assert len(pages) > 100
    assert not {figure: found for figure, found in pages.items() if len(found) > 1}


@pytest.mark.parametrize("page", [p for p in PAGES if p.startswith(("README", "docs/recipes"))])
def test_results_have_their_intervals_and_numbers(page):
    for table in tables(PAGES[page]):
        cells = [cell for row in table[2:] for cell in row if re.search(r"\d\.\d\d", cell)]
        if cells:
            assert all("[" in cell or "±" in cell for cell in cells), table[0]
            assert "n=" in "".join(table[0]) or "n = " in PAGES[page], table[0]


def test_differences_of_the_first_screen_are_those_that_claims_printed():
    [encodings] = tables(PAGES["README.md"])
    measured = {re.findall(r"`(\w+)`", line[0])[0]: line[-1].strip() for line in encodings[2:]}
    assert measured.pop("sinusoidal") == "0"
    # names of encodings are those of rows without options of their own; of two runs counts the one
    # with more seeds
    by_length = PAGES["docs/claims.md"].partition("`length`:")[2].partition("![length]")[0]
    rows = re.findall(r"^(\w+) +(\d) +(.*)", by_length, re.MULTILINE)
    by_seeds = sorted(rows, key=itemgetter(1))
    printed = {name: f"{re.split('  +', cells)[2]} ({n})" for name, n, cells in by_seeds}
    assert measured == {name: printed.get(name, "") for name in measured}
    at_equal_bits = {
        line[0].strip(): line[2].strip()
        for line in tables(PAGES["docs/recipes/small_experiments.md"])[1][3:]
    }
    bits = {re.findall(r"`(\w+)`", line[0])[0]: line[2].strip() for line in encodings[2:]}
    assert bits.pop("sinusoidal") == "0"
    assert len(at_equal_bits) == 10
    assert bits == {name: at_equal_bits.get(name, "") for name in bits}


# What README and the page on the choice say without figures, of the rows behind it: where a row's
# difference to sinusoids is clear, "+" or "-", and where it is not, "0", by range of lengths. Of
# bits ("level" and "less"), less is better.
AHEAD = "conditional", "kerple", "unifpe", "shaw", "shape", "rotary", "alibi"
SAID = {
    "`conditional`, `kerple`, `unifpe`, `shaw`, `shape`, `rotary` and `alibi` needed fewer": {
        f"level {row}": "-" for row in AHEAD
    },
    "but `unifpe` and `shape` learn more slowly": {"less unifpe": "+", "less shape": "+"},
    "`kerple` had more BLEU at 21-45 words (three seeds)": {"length kerple 2": "+++"},
    "and so had `shaw` and `cape` (five seeds), but at 46 words and more `kerple` alone": {
        "shaw": "0++0",
        "cape": "0++0",
        "length kerple 2": "++++",
    },
    "`rotary` and `alibi` were not clearly different there at 31-45 words": {
        "length rotary 2": "++0",
        "alibi": "0+0",
    },
    "On captions SHAPE was worse, and CAPE was not clearly different": {
        "multi30k shape": "-",
        "multi30k cape": "0",
    },
    "SHAPE, which learns more slowly, loses BLEU. CAPE is not clearly different anywhere": {
        "multi30k shape": "-",
        "multi30k cape": "0000",
    },
    "Shaw, CAPE and KERPLE are ahead of sinusoids at 31-45 words; T5 is behind, and so is SHAPE": {
        "shaw": "0++",
        "cape": "0++",
        "length kerple 2": "++++",
        "t5": "0+-",
        "shape": "-0-",
    },
    "nor was `alibi` after 6,000 updates (five seeds), where it had": {"longer alibi 2": "0+0"},
    "ALiBi is not clearly different there, nor after three times": {
        "alibi": "0+0",
        "longer alibi 2": "0+0",
    },
    "`conditional`, KERPLE, `unifpe`, Shaw, SHAPE, rotary and ALiBi need fewer bits per token": {
        f"level {row}": "-" for row in AHEAD
    },
    "Whether CAPE is ahead cannot be told": {"level cape": "0"},
    "at the end of training they, and ALiBi, need more bits than sinusoids within": {
        "less alibi": "+",
        "less shape": "+",
        "less unifpe": "+",
    },
    "SHAPE was worse up to 24 subwords": {"multi30k shape": "--0"},
    "documentation `shaw`, `rotary`, `rel_scalar` and `kerple` were": {
        f"less {row}": "-" for row in ("shaw", "rotary", "rel_scalar", "rel_scalar24", "kerple")
    },
}


def test_commands_of_the_readme_need_no_scrolling():
    blocks = re.findall(r"^```.*?^```", PAGES["README.md"], re.MULTILINE | re.DOTALL)
    assert blocks and max(len(line) for block in blocks for line in block.splitlines()) <= 90


def test_no_sentence_on_the_choice_goes_beyond_its_table():
    text = " ".join((PAGES["README.md"] + PAGES["docs/compare.md"]).split())
    comparisons, rows = read_kept(str(ROOT / "recipes" / "claims" / "kept.json"))
    known = {
        f"{one.part} {one.row} {one.run}": [
            each["less_base"] for name, each in one.by_length.items() if name != "all"
        ]
        for one in rows
        if all(each.get("less_base") for name, each in one.by_length.items() if name != "all")
    }
    for line in tables(PAGES["docs/recipes/small_experiments.md"])[1][3:]:
        mean, half = map(float, line[2].split("±"))
        known[f"level {line[0].strip()}"] = [[mean, mean - half, mean + half]]
    for line in tables(PAGES["docs/recipes/small_experiments.md"])[6][2:]:
        cells = [map(float, re.findall(r"[+-][\d.]+", cell)) for cell in line[2:]]
        known[f"multi30k {line[0].strip()}"] = [list(cell) for cell in cells]
    for line in tables(PAGES["docs/recipes/small_experiments.md"])[4][3:]:
        pairs = [map(float, cell.split("±")) for cell in line if "±" in cell]
        known[f"less {line[0].strip()}"] = [[m, m - half, m + half] for m, half in pairs]
    for sentence, expected in SAID.items():
        assert sentence in text
        for row, signs in expected.items():
            found = known[row if " " in row else f"length {row} 1"]
            clear = ("+" if low > 0 else "-" if high < 0 else "0" for _, low, high in found)
            assert "".join(clear).startswith(signs), (sentence, found)
    # no difference is there that was not printed
    printed = [each for one in known.values() for each in one]
    printed += [[sum(one["interval"]) / 2, *one["interval"]] for one in comparisons]
    pairs = {(f"{abs(mean):.1f}", f"{(high - low) / 2:.1f}") for mean, low, high in printed}
    found = set(re.findall(r"(\d+\.\d) ± (\d+\.\d)", text))
    assert len(found) > 15 and not found - pairs
    losses = {f"{one.loss[0]:.3f}" for one in rows if one.part == "length"}
    assert not set(re.findall(r"\b0\.\d{3}\b", text)) - losses


def test_the_files_to_read_first_are_an_evenings_reading():
    page = PAGES["docs/architecture.md"]
    listed = page.partition("## Read these files in this order")[2].partition("\nChecks of")[0]
    files = re.findall(r"`([\w/]+\.py)`", listed)
    assert len(files) == len(set(files)) >= 14
    texts = [(ROOT / "fairseq_posenc" / file).read_text(encoding="utf-8") for file in files]
    assert sum(text.count("\n") for text in texts) <= 2500
