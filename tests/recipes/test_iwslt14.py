"""IWSLT14's recipe trains and scores as fairseq's example; a whole run is tested end to end."""

import random
import shlex
from argparse import Namespace

import pytest
from fairseq import scoring
from fairseq.data import Dictionary

from fairseq_posenc.encodings import names
from fairseq_posenc.tools.scores.score import evaluate

RECIPE = "recipes/iwslt14.sh"
# fairseq's examples/translation/README.md, IWSLT'14; None: an option without value
EXAMPLE = {
    "--share-decoder-input-output-embed": None, "--optimizer": "adam",
    "--adam-betas": "(0.9, 0.98)", "--clip-norm": "0.0", "--lr": "5e-4",
    "--lr-scheduler": "inverse_sqrt", "--warmup-updates": "4000", "--dropout": "0.3",
    "--weight-decay": "0.0001", "--criterion": "label_smoothed_cross_entropy",
    "--label-smoothing": "0.1", "--max-tokens": "4096", "--eval-bleu": None,
    "--eval-bleu-args": '{"beam": 5, "max_len_a": 1.2, "max_len_b": 10}',
    "--eval-bleu-detok": "moses", "--eval-bleu-remove-bpe": None,
    "--best-checkpoint-metric": "bleu", "--maximize-best-checkpoint-metric": None,
}  # fmt: skip
# not of the example: where and how long, what fairseq's defaults are, and the encoding
OURS = ["--distributed-world-size", "--user-dir", "--source-lang", "--target-lang", "--save-dir"]
OURS += ["--seed", "--keep-last-epochs", "--max-update", "--update-freq", "--position-encoding"]
OURS += ["--log-format", "--log-interval"]
DEFAULTS = {"--update-freq": "1", "--required-batch-size-multiple": "8"}


def options(words):
    """The options of a command line by flag; of one that is repeated the last."""
    found = {}
    for word, value in zip(words, [*words[1:], "--"]):
        if word.startswith("--"):
            found[word] = None if value.startswith("--") else value
    return found


def value(text):
    """Numbers and lists of them are equal however they are written."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return text and text.replace(", ", ",")


def test_the_plan_is_fairseqs_example_for_every_encoding_and_seed(run):
    printed = run("bash", RECIPE, "--stage", "2", "--plan", "--device", "cuda", "--gpu-memory", 16)
    assert printed.count("score_cell") == len(names()) * 3
    assert printed.count("posenc table --by-length") == 2
    lines = [shlex.split(line) for line in printed.splitlines() if line.startswith("fairseq-train")]
    assert all(line.count("--required-batch-size-multiple") == 1 for line in lines)
    trainings = [options(line) for line in lines]
    cells = {(each["--position-encoding"], each["--seed"]) for each in trainings}
    assert cells == {(name, seed) for name in names() for seed in "123"} and len(lines) == len(
        cells
    )
    for each in trainings:
        assert (each.pop("--arch"), each.pop("--task")) == (
            "posenc_transformer_iwslt_de_en",
            "posenc_translation",
        )
        assert {**each, **DEFAULTS} == each and each.pop("--required-batch-size-multiple")
        assert each["--max-update"] == "50000" and each["--distributed-world-size"] == "1"
        example = {flag: value(text) for flag, text in each.items() if flag in EXAMPLE}
        assert example == {flag: value(text) for flag, text in EXAMPLE.items()}
        others = each.keys() - EXAMPLE.keys() - set(OURS)
        assert others <= {"--position-source-scale"}
    assert "de-en.tgz" in printed and "posenc table --paper" not in printed


def bleu(folder, pairs):
    """Tokenised BLEU of pairs of reference and hypothesis: ours, and that of fairseq's scorer."""
    dictionary, lines = Dictionary(), []
    scorer = scoring.build_scorer(Namespace(scoring="bleu"), dictionary)
    for number, pair in enumerate(pairs):
        # what fairseq-generate --remove-bpe does with a T- and an H-line
        tokens = [dictionary.encode_line(text, add_if_not_exist=True) for text in pair]
        scorer.add(*(ids.int() for ids in tokens))
        lines += [f"S-{number}\tja", f"T-{number}\t{pair[0]}"]
        lines += [f"{kind}-{number}\t-0.5\t{pair[1]}" for kind in "HD"]
    (folder / "out").write_text("\n".join([*lines, f"Generate: {scorer.result_string()}"]))
    ours = evaluate(
        generated=f"{folder}/out", remove_bpe="none", language="en", source_language="de"
    )
    return ours.all.metrics["tokenised_bleu"], scorer.score()


def test_tokenised_bleu_is_that_of_fairseqs_scorer_but_for_empty_hypotheses(tmp_path):
    dice, pairs = random.Random(1), []
    words = ["the", "of", "&apos;s", "a.", "\u2028x", "x\xa0y", "ä", "1", "<<unk>>"]
    for _ in range(60):
        reference = dice.choices(words, k=dice.randint(1, 30))
        hypothesis = [dice.choice(["<unk>", "x"]) if dice.random() < 0.2 else w for w in reference]
        pairs.append((" ".join(reference), " ".join(hypothesis[: dice.randint(1, 40)])))
    ours, theirs = bleu(tmp_path, pairs)
    assert ours == pytest.approx(theirs, rel=1e-12) and ours > 20
    # to fairseq an empty hypothesis is a word, and a wrong one
    missing = [("of a", ""), *pairs]
    ours, theirs = bleu(tmp_path, missing)
    assert ours < theirs == pytest.approx(bleu(tmp_path, [("of a", "b"), *pairs])[0], rel=1e-12)
