"""What a recipe takes is told before, and what is there already is not counted again."""

import pytest

from fairseq_posenc.tools.prepare.parallel.corpora import named
from fairseq_posenc.tools.prepare.parallel.sources import downloads
from fairseq_posenc.tools.recipe import space
from fairseq_posenc.tools.recipe.space import GB, Needs

FRENCH = [
    "corpus wmt14_en_fr", "corpus wmt14_en_fr", "setting wmt14_en_fr vanilla",
    "translation wmt14_en_fr 6 512 15 0 3", "hours cape-2 fr6 cape --position-global-shift 5",
]  # fmt: skip


@pytest.fixture
def needs(tmp_path):
    """A function that counts what lines ask for, in an empty run folder."""

    def needs(*lines):
        return Needs(lines, str(tmp_path / "run"), str(tmp_path / "run" / "raw"))

    return needs


def test_french_takes_what_its_archives_and_their_text_do(needs):
    found = needs(*FRENCH)
    sizes = [2595102720, 918311367, 657632379, 2365634246, 80418416]
    assert found.download == sum(sizes)
    assert 50 * GB < needs(*FRENCH[:3]).disk < 70 * GB and 10 * GB < found.memory < 20 * GB
    assert "6.6 GB to download" in str(found) and "480 GPU-hours by the paper for 1" in str(found)


def test_archives_that_are_there_and_subwords_are_not_needed_again(needs, tmp_path):
    raw, done = tmp_path / "run" / "raw", tmp_path / "run" / "text" / "wmt14_en_fr"
    for folder in (raw, done):
        folder.mkdir(parents=True)
    for file in downloads(named("wmt14_en_fr")):
        (raw / file.name).touch()
    (done / "subwords.done").touch()
    found = needs(*FRENCH)
    assert (found.download, found.memory) == (0, 0) and " memory" not in str(found)


def test_text_of_smaller_archives_takes_less(needs, tmp_path):
    whole, raw = needs("corpus wmt14_en_fr").disk, tmp_path / "run" / "raw"
    raw.mkdir(parents=True)
    for file in downloads(named("wmt14_en_fr")):
        with open(raw / file.name, "wb") as stream:
            stream.truncate(file.size // 10)
    found = needs("corpus wmt14_en_fr")
    assert found.disk == pytest.approx(whole / 10) and 1 * GB < found.memory < 2 * GB


def test_a_disk_or_memory_with_less_is_told(needs, tmp_path, monkeypatch):
    found = needs(*FRENCH)
    free = space.shutil.disk_usage("/")._replace(free=found.disk + found.download)
    monkeypatch.setattr(space.shutil, "disk_usage", lambda path: free)
    monkeypatch.setattr(space, "free_memory", lambda: found.memory)
    assert found.lacking() == []
    free = free._replace(free=free.free - 1)
    monkeypatch.setattr(space, "free_memory", lambda: found.memory - 1)
    disk, memory = found.lacking()
    assert disk.startswith(f"{tmp_path}/run has ") and "learning BPE needs 15.0 GB" in memory
    # what a run has made already it does not need a second time; downloads are counted apart
    for name, problems in (("raw/x", 2), ("text", 1)):
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_bytes(b"x")
        assert len(found.lacking()) == problems


def test_settings_that_reform_text_and_finished_models(needs):
    plain, joined = (needs(f"setting wmt16_en_de {form}").disk for form in ("vanilla", "x"))
    assert joined - plain == pytest.approx(1.4 * GB * space.SUBWORDS)
    left, done = (needs(f"translation wmt16_en_de 6 512 {n} 10").disk for n in ("1 0", "0 1"))
    # of SHAPE's 61 million parameters
    assert left == pytest.approx(61e6 * 12 * 10, rel=0.02) and left == 30 * done


def test_checkpoints_of_trainings_at_a_time_and_dumps(needs, tmp_path):
    all_of_them, some = (needs(f"bert posenc_bert_base 30000 480 0 3{n}") for n in ("", " 8"))
    assert some.disk * 60 == all_of_them.disk and some.trainings == 480
    assert needs("wikipedia en de").download == space.ENGLISH + space.OTHERS
    (tmp_path / "run" / "raw").mkdir(parents=True)
    (tmp_path / "run/raw/enwiki-1-pages-articles.xml.bz2").touch()
    assert needs("wikipedia en de").download == space.OTHERS


def test_what_is_ready_loaded_or_extracted_is_not_made_again(needs, tmp_path):
    ready = needs("corpus wmt14_en_fr ready")
    assert (ready.download, ready.memory, ready.work) == (0, 0, 0) and ready.disk > GB
    lines = "load 1 2", "wikipedia en"
    before = needs(*lines)
    (tmp_path / "run" / "raw").mkdir(parents=True)
    (tmp_path / "run" / "dumps").mkdir()
    (tmp_path / "run" / "dumps" / "en.extracted").touch()
    after = needs(*lines)
    assert before.download - after.download == GB and before.disk == after.disk
    assert before.work > after.work == 0


@pytest.mark.parametrize(
    "line, file",
    [("0::/job/step\n", "job/memory.max"), ("4:memory:/job\n", "memory/job/memory.limit_in_bytes")],
)
def test_the_limit_of_a_job_is_memory(tmp_path, line, file):
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    8 kB\n")
    (tmp_path / "self" / "cgroup").write_text(line)
    assert space.free_memory(str(tmp_path), str(tmp_path / "groups")) == 8192
    limit = tmp_path / "groups" / file
    limit.parent.mkdir(parents=True)
    for content, free in (("max", 8192), ("5000", 5000), ("9223372036854771712", 8192)):
        limit.write_text(content + "\n")
        assert space.free_memory(str(tmp_path), str(tmp_path / "groups")) == free
    assert space.free_memory(str(tmp_path / "none")) is None
