"""Languages with a hyphen: refused where a name of fairseq's is made of them, else understood."""

import re
import sys
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from recipes.lib import po_text

ROOT = Path(__file__).parents[2]
# by the file that declares the options: a command, in which XX stands for the language
PREPARED = {
    "prepare_translation": ["prepare translation --source-lang {} --target-lang {} --train train "
                            "--valid train --output bin"],
    "prepare_binarise": ["prepare binarise --source-lang {} --target-lang {} --trainpref train "
                         "--destdir bin"],
    "prepare_pairs": [
        "prepare pairs clean wmt14_en_fr --languages {},{} --input train --output new",
        "prepare pairs setting extrapolate --languages {},{} --input train --output new",
        "prepare pairs setting interpolate --languages {},{} --input train --output new",
    ],
}  # fmt: skip
UNDERSTOOD = {  # "en" is the language of the other option
    "prepare_tokenise": ["prepare tokenise --language {} --input hypotheses --output out --workers "
                         "1"],
    "score": [
        "score --hypothesis hypotheses --reference references --language {} --output out",
        "score --hypothesis hypotheses --reference references --source hypotheses --language en "
        "--percentiles --source-language {} --output out",
    ],
    "prepare_squad": [],  # its metric: tests/question_answering/test_folder.py
    "prepare_text": [],  # names of folders
    "analyse": [],  # names of files in a data folder: tests/tools/analyses/test_command.py
}  # fmt: skip
HYPHENS = ["pt-BR", "zh-Hant-TW"]


def test_every_command_that_takes_a_language_is_tried_here():
    folder = ROOT / "fairseq_posenc/tools/commands"
    option = re.compile(r"\"--[a-z-]*lang[a-z-]*\"")
    named = {file.stem for file in folder.glob("*.py") if option.search(file.read_text())}
    # which takes fairseq-preprocess's
    assert named | {"prepare_binarise"} == {*PREPARED, *UNDERSTOOD}


@pytest.mark.parametrize("language", HYPHENS)
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("command", sum(PREPARED.values(), []))
def test_a_language_of_a_prepared_folder_has_no_hyphen(
    posenc, tmp_path, monkeypatch, capsys, command, language, number
):
    monkeypatch.chdir(tmp_path)
    words = command.format(*("en", language)[:: -1 if number else 1]).split()
    with pytest.raises((UsageError, SystemExit)) as caught:
        posenc(*words)
    printed = f"{caught.value} {capsys.readouterr().err}"
    written = language.replace("-", "_")
    assert f"write {written}, and call your files so (train.{written})" in printed
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("recipe", ["own", "longer_inputs"])
def test_recipes_refuse_it_before_any_work(fails, tmp_path, recipe):
    texts = [word for split in ("train", "valid", "test") for word in (f"--{split}", split)]
    command = ["--source-lang", "en", "--target-lang", "pt-BR", *texts, "--run-dir", tmp_path]
    printed = fails("bash", f"recipes/{recipe}.sh", *command, "--plan")
    assert "--target-lang pt-BR: " in printed and "write pt_BR" in printed


def test_text_of_po_files_has_names_that_can_be_prepared(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", "po_text x --language pt-br --output out".split())
    with pytest.raises(UsageError, match="write pt_br"):
        po_text.main()


@pytest.mark.parametrize("language, plain", [("pt-BR", "pt"), ("zh-CN", "zh"), ("sr-Latn", "sr")])
@pytest.mark.parametrize("command", sum(UNDERSTOOD.values(), []))
def test_rules_for_a_language_are_those_of_its_code(
    posenc, write, tmp_path, monkeypatch, command, language, plain
):
    """Portuguese abbreviations, Chinese characters: by the rules of the language."""
    monkeypatch.chdir(tmp_path)
    lines = ["O Sr. Silva vem às 3 h.", "我们明天去北京。", "Dobar dan, g. Petroviću!"]
    write("hypotheses", lines), write("references", lines[::-1])
    outputs = []
    for name in (language, plain):
        posenc(*command.format(name).split())
        outputs.append((tmp_path / "out").read_text(encoding="utf-8").replace(name, plain))
    assert outputs[0] == outputs[1]
