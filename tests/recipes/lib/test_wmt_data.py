"""The test sets of a corpus: those that its text has, a line each."""

from fairseq_posenc.tools.translation.corpora import CORPORA
from recipes.lib.wmt_data import CorpusSetting


def test_all_test_sets_count_and_only_those_that_are_there(tmp_path):
    setting = CorpusSetting("vanilla", {"corpus": "wmt16_en_de", "form": ""}, str(tmp_path))
    assert setting.all_tests == list(CORPORA["wmt16_en_de"].tests)
    folder = tmp_path / "text" / "wmt16_en_de"
    folder.mkdir(parents=True)
    (folder / "tests").write_text("newstest2013\nnewstest2014\n")
    assert setting.all_tests == ["newstest2013", "newstest2014"]
