"""A recipe's model in Python translates raw text as the recipe's own commands do."""

import json

import pytest

from fairseq_posenc.tools.scores.inputs import read_texts

ODD = ["“A man – asleep – isn’t well-known.”", "Rock & roll: 5,300 <b>!", "The dog sleeps. "]
SCRIPT = """
import json, sys
from fairseq_posenc.models.transformer import PosencTransformerModel
model = PosencTransformerModel.from_pretrained(
    sys.argv[1], "checkpoint_last.pt", sys.argv[2], cpu=True
)
raw = [line.rstrip("\\n") for line in open(sys.argv[3], encoding="utf-8")]
found = model.translate(raw, beam=4, max_len_a=1.5, max_len_b=10)
single = model.translate(raw[0], beam=4, max_len_a=1.5, max_len_b=10)
print("found:", json.dumps([found, single]))
"""


def generate(run, folder, data):
    """Translations of the test set in a folder of binarised data, as score.py has them."""
    printed = run(
        "fairseq-generate", data, "--user-dir", "fairseq_posenc", "--task", "posenc_translation",
        "--source-lang", "en", "--target-lang", "de", "--path", folder / "checkpoint_last.pt",
        "--cpu", "--required-batch-size-multiple", 1, "--beam", 4,
        "--max-len-a", 1.5, "--max-len-b", 10,
    )  # fmt: skip
    (folder / "again.out").write_text(printed, encoding="utf-8")
    return read_texts(generated=str(folder / "again.out"), language="de").hypothesis


@pytest.mark.slow
def test_raw_text_is_translated_as_by_the_recipe(run, tmp_path):
    runs, odd = tmp_path / "runs", tmp_path / "odd"
    options = "--stage 2 --train 400 --test 12 --test-lengths 4-12 --updates 150 --seeds 1".split()
    options += ["--encodings", "rel_scalar", "--run-dir", runs, "--device", "cpu"]
    run("bash", "recipes/quickstart.sh", *options)
    raw = (runs / "corpus" / "test.en").read_text(encoding="utf-8").splitlines() + ODD
    odd.mkdir()
    for language in ("en", "de"):
        source, tokens = odd / f"raw.{language}", odd / f"tok.{language}"
        source.write_text("".join(f"{line}\n" for line in raw), encoding="utf-8")
        run("posenc", "prepare", "tokenise", "--language", language, "--input", source,
            "--output", tokens)  # fmt: skip
        run("subword-nmt", "apply-bpe", "--codes", runs / "bpe.codes", "--input", tokens,
            "--output", odd / f"bpe.{language}")  # fmt: skip
    run("fairseq-preprocess", "--source-lang", "en", "--target-lang", "de", "--testpref",
        odd / "bpe", "--srcdict", runs / "bin" / "dict.en.txt", "--tgtdict",
        runs / "bin" / "dict.de.txt", "--destdir", odd / "bin")  # fmt: skip
    cell = runs / "rel_scalar" / "seed1"
    expected = generate(run, cell, odd / "bin")
    printed = run("python", "-c", SCRIPT, cell, runs / "bin", odd / "raw.en")
    line = next(line for line in printed.splitlines() if line.startswith("found:"))
    found, single = json.loads(line.partition(" ")[2])
    assert found == expected and single == expected[0]
    # a model that has learned something: translations differ, and hold no marks of subwords
    assert len(set(found)) > 3 and not any("@@" in text for text in found)
