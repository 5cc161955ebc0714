"""A user's own parallel text: from two raw files to a score and a translated sentence."""

import random
import re

import pytest

from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.scores.inputs import read_texts

FRENCH = dict(zip("the cat dog sleeps runs here today".split(),
                  "le chat chien dort court ici aujourd'hui".split()))  # fmt: skip


@pytest.mark.parametrize("subwords, updates", [("--bpe", 200), ("--sentencepiece", 60)])
def test_raw_text_becomes_a_model_that_translates(run, tmp_path, subwords, updates):
    """The longer training learns the language; what the other translates is the same everywhere."""
    rng = random.Random(1)
    for split, count in (("train", 300), ("test", 50)):
        lines = [rng.sample(list(FRENCH), k=3) for _ in range(count)]
        english = "".join(f"{' '.join(words)}.\n" for words in lines)
        french = "".join(f"{' '.join(map(FRENCH.get, words))}.\n" for words in lines)
        (tmp_path / f"{split}.en").write_text(english)
        (tmp_path / f"{split}.fr").write_text(french)
    data, model = tmp_path / "bin", tmp_path / "model"
    run("posenc", "prepare", "translation", "--source-lang", "en", "--target-lang", "fr",
        "--train", tmp_path / "train", "--test", tmp_path / "test", "--valid-lines", 10,
        "--ratio", 9, subwords, 45, "--output", data)  # fmt: skip
    plugin = ("--user-dir", "fairseq_posenc", "--task", "posenc_translation", "--cpu")
    run("fairseq-train", data, *plugin, "--arch", "posenc_transformer_tiny", "--optimizer", "adam",
        "--share-all-embeddings", "--lr", 0.005, "--lr-scheduler", "inverse_sqrt", "--dropout", 0,
        "--warmup-updates", 40, "--max-tokens", 1000, "--max-update", updates,
        "--disable-validation", "--save-interval", 999, "--save-dir", model)  # fmt: skip
    generated = run("fairseq-generate", data, *plugin, "--path", model / "checkpoint_last.pt",
                    "--beam", 2, "--required-batch-size-multiple", 1)  # fmt: skip
    (tmp_path / "out").write_text(generated)
    # references and kind of subwords are those that the folder keeps
    score = ("posenc", "score", "--generated", tmp_path / "out", "--data", data)
    printed = run(*score)
    raw = f"note: references are the raw text of {data}/test.raw.fr\n"
    assert run(*score, "--reference", tmp_path / "test.fr") == printed.replace(raw, "")
    assert (data / "test.raw.fr").read_text() == (tmp_path / "test.fr").read_text()
    assert "language: fr, source: en" in printed
    hub = PosencTransformerModel.from_pretrained(
        str(model), "checkpoint_last.pt", str(data), cpu=True
    )
    english, french = (
        (tmp_path / f"test.{side}").read_text().split("\n")[:-1] for side in ("en", "fr")
    )
    assert hub.decode(hub.encode(english[0])) == english[0]
    translated = hub.translate(english, beam=2)
    assert len(set(translated)) > 3
    assert translated == read_texts(generated=str(tmp_path / "out"), data=str(data)).hypothesis
    if subwords == "--bpe":
        [bleu] = re.findall(r"^all +50 +([\d.]+)", printed, re.MULTILINE)
        assert float(bleu) > 80
        assert sum(map(str.__eq__, translated, french)) > 40
