"""IWSLT14's recipe trains and scores as fairseq's example; a whole run is tested end to end."""

import random
import re
from argparse import Namespace

import pytest
from fairseq import scoring
from fairseq.data import Dictionary

from fairseq_posenc.encodings import names
from fairseq_posenc.tools.scores.score import evaluate

RECIPE = "recipes/iwslt14.sh"


def test_the_plan_has_every_encoding_and_seed(run):
    """As fairseq's example trains, which test_plans.py holds."""
    printed = run("bash", RECIPE, "--stage", "2", "--plan", "--device", "cuda", "--gpu-memory", 16)
    assert printed.count("score_cell") == len(names()) * 3
    assert printed.count("posenc table --by-length") == 2
    lines = re.findall("^fairseq-train .*", printed, re.MULTILINE)
    assert all(line.count("--required-batch-size-multiple 8 ") == 1 for line in lines)
    cells = [re.search(r"--seed (\d) .*--position-encoding (\w+)", line).groups() for line in lines]
    assert sorted(cells) == sorted((seed, name) for name in names() for seed in "123")
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
