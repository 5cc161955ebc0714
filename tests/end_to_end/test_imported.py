"""Models of transformers, made small, through fairseq's commands after posenc import."""

import json
import shutil
import string
from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers")
REPOSITORY = Path(__file__).resolve().parents[2]
BENCHMARKS = REPOSITORY / "recipes" / "smoke" / "benchmarks.tar.xz"
BRIEF = "--no-epoch-checkpoints --disable-validation --max-update 1".split()


def hypotheses(printed):
    """The translations that fairseq-generate prints, with their scores."""
    return sorted(line for line in printed.splitlines() if line.startswith("H-"))


@pytest.mark.slow
def test_a_wmt19_model_translates_and_is_fine_tuned(run, tmp_path):
    theirs, ours, letters = tmp_path / "theirs", tmp_path / "ours", string.ascii_lowercase
    config = transformers.FSMTConfig(
        langs=["en", "de"], src_vocab_size=30, tgt_vocab_size=30, d_model=16, encoder_layers=2,
        decoder_layers=1, encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_attention_heads=2,
        decoder_attention_heads=2, max_position_embeddings=30,
    )  # fmt: skip
    transformers.FSMTForConditionalGeneration(config).save_pretrained(theirs)
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *(f"{letter}</w>" for letter in letters)]
    for side in ("src", "tgt"):
        numbers = {symbol: number for number, symbol in enumerate(symbols)}
        (theirs / f"vocab-{side}.json").write_text(json.dumps(numbers), encoding="utf-8")
    run("posenc", "import", "--from", theirs, "--output", ours / "model.pt")
    text = "".join(f"{' '.join(letters[n : n + 7])}\n" for n in range(12))
    for language in ("en", "de"):
        (tmp_path / f"text.{language}").write_text(text, encoding="utf-8")
    run("fairseq-preprocess", "--source-lang", "en", "--target-lang", "de", "--destdir",
        tmp_path / "bin", "--srcdict", ours / "dict.en.txt", "--tgtdict", ours / "dict.de.txt",
        *(f"--{split}pref={tmp_path / 'text'}" for split in ("train", "test")))  # fmt: skip
    task = "--user-dir fairseq_posenc --task posenc_translation --cpu --num-workers 0".split()
    generate = ["fairseq-generate", tmp_path / "bin", *task, "--max-len-b", "9", "--beam", "2"]
    generate += ["--required-batch-size-multiple", "1", "--path"]
    found = hypotheses(run(*generate, ours / "model.pt"))
    assert len(found) == 12
    # the same from a file without a pickle
    plain = tmp_path / "plain"
    run("posenc", "export", "--path", ours / "model.pt", "--to", "safetensors", "--data", ours,
        "--output", plain)  # fmt: skip
    assert hypotheses(run(*generate, plain / "posenc.safetensors")) == found
    sizes = "--arch posenc_transformer_tiny --encoder-layers 2 --decoder-layers 1".split()
    for side in ("encoder", "decoder"):
        sizes += [f"--{side}-embed-dim=16", f"--{side}-ffn-embed-dim=24"]
    for start in (ours / "model.pt", plain / "posenc.safetensors"):
        printed = run(
            "fairseq-train", tmp_path / "bin", *task, *sizes, "--finetune-from-model", start,
            "--position-encoding", "rotary", "--optimizer", "adam", "--max-tokens", "200", *BRIEF,
            "--save-dir", tmp_path / start.stem,
        )  # fmt: skip
        assert "trained with position:sinusoidal" in printed and "start afresh" not in printed
        trained = tmp_path / start.stem / "checkpoint_last.pt"
        assert len(hypotheses(run(*generate, trained))) == 12


def test_a_bert_base_model_is_fine_tuned_on_glue(run, tmp_path):
    shutil.unpack_archive(BENCHMARKS, tmp_path)
    theirs, ours, data = tmp_path / "theirs", tmp_path / "ours", tmp_path / "mnli"
    pieces = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
    symbols = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, "the", "."]
    config = transformers.BertConfig(
        vocab_size=len(symbols), hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=512, max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(theirs)
    (theirs / "vocab.txt").write_text("\n".join(symbols) + "\n", encoding="utf-8")
    run("posenc", "import", "--from", theirs, "--output", ours / "model.pt")
    run("posenc", "prepare", "glue", "--task", "MNLI", "--subwords", ours,
        "--input", tmp_path / "glue" / "MNLI", "--output", data)  # fmt: skip
    bert = "--user-dir fairseq_posenc --arch posenc_bert_tiny --max-positions 64 --cpu".split()
    bert += "--num-workers 0 --optimizer adam --lr 0.001 --batch-size 8".split()
    bert += [f"--{what}=posenc_sentence_prediction" for what in ("task", "criterion")]
    start = ["--finetune-from-model", ours / "model.pt", *BRIEF, "--save-dir"]
    printed = run("fairseq-train", data, *bert, *start, tmp_path / "kept")
    assert "position:learned" in printed and "segments:input" in printed
    assert "start afresh" not in printed
    printed = run("fairseq-train", data, *bert, *start, tmp_path / "rotary",
                  "--position-encoding", "rotary")  # fmt: skip
    assert "trained with position:learned" in printed and "position:rotary" in printed
    path = tmp_path / "rotary" / "checkpoint_last.pt"
    run("posenc", "predict", "--path", path, "--data", data, "--subsets", "valid", "--cpu",
        "--output", tmp_path / "out")  # fmt: skip
    [predicted] = (tmp_path / "out").glob("*valid*")
    assert predicted.read_text(encoding="utf-8").strip()
