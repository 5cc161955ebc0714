"""The BERT part of the claims recipe, end to end at toy size."""

import json

import pytest

TOY = """--stage 2 --sentences 300 --length 24 --updates 4 --batch 4 --examples 20 --task-updates 2
    --pairs 10 --jobs 1 --seeds 3 --encodings""".split()


@pytest.mark.slow
def test_the_bert_experiment_writes_probes_of_every_cell_once(run, tmp_path):
    command = ["bash", "recipes/claims/bert.sh", "--run-dir", tmp_path, *TOY]
    command.append("abs_scalar,rel_scalar,plain=none")
    printed = run(*command)
    probes = {}
    for label in ("abs_scalar", "rel_scalar", "plain"):
        file = tmp_path / label / "seed3" / "probes.json"
        probes[label] = json.loads(file.read_text())
        assert f"[{label} seed 3] masked_lm_bits" in printed
        assert probes[label]["encoding"] == label and probes[label]["seed"] == "3"
        assert probes[label]["unigram_bits"] > 5
        file.write_text("kept")
    bag, table = probes["plain"], probes["abs_scalar"]
    assert bag["word_order_accuracy"] == bag["longer_word_order_accuracy"] == 50
    assert table["longer_bits"] is None and bag["longer_bits"] > 5
    kinds = {
        name for name in probes["rel_scalar"] if name.startswith("two_sentence_accuracy")
    } - set(bag)
    endings = ("", "_input", "_per_head", "_input_5000", "_per_head_5000")
    assert kinds == {f"two_sentence_accuracy{ending}" for ending in endings}
    printed = run(*command)
    assert "fine-tune" in printed and "] train" not in printed and "masked_lm_bits" not in printed
    assert file.read_text() == "kept"
