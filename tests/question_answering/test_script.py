import json
from pathlib import Path

import pytest

from fairseq_posenc.data.questions import Split

pytestmark = pytest.mark.parametrize("subwords_folder", ["cased wordpiece"], indirect=True)


def test_the_script_reports_what_it_wrote_and_left_out(files, subwords_folder, tmp_path, run):
    data = json.loads(Path(files["en"]).read_text(encoding="utf-8"))
    data["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] += 1
    (tmp_path / "broken.json").write_text(json.dumps(data), encoding="utf-8")
    options = ["--input", tmp_path / "broken.json", "--split", "train", "--workers", "1"]
    options += ["--subwords", subwords_folder, "--output", tmp_path / "out", "--skip-malformed"]
    printed = run("posenc", "prepare", "squad", *options)
    assert "left out: " in printed and "question en-0-0: answer" in printed
    assert "out: train, 15 questions, 2 contexts, " in printed
    assert len(Split(str(tmp_path / "out"), "train")) == 15
