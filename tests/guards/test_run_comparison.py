"""A changed run is refused in one line, or the change is on the list of what may change."""

import re
import sys
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils, tasks
from fairseq.dataclass.initialize import add_defaults
from fairseq.trainer import Trainer

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import languages, run_comparison
from fairseq_posenc.models import bert, transformer, transformer_lm  # noqa: F401 (registered)
from fairseq_posenc.tools.averaging import average
from tests.tiny import parsed

COMMON = "--optimizer adam --lr 0.003 --max-tokens 200 --cpu --num-workers 0 --no-epoch-checkpoints"
RUNS = {
    "translation": "pairs --task posenc_translation --arch posenc_transformer_tiny"
    " --share-all-embeddings --position-encoding cape",
    "lm": "text --task language_modeling --arch posenc_transformer_lm_tiny --tokens-per-sample 32"
    " --position-encoding alibi --share-decoder-input-output-embed",
    "bert": "text --task posenc_masked_lm --criterion masked_lm --arch posenc_bert_tiny"
    " --position-encoding rel_scalar --tokens-per-sample 32",
}
RUNS["unifpe"] = RUNS["translation"].replace("cape", "unifpe")
RUNS["dynamic"] = RUNS["translation"].replace(
    "cape", "rotary --position-scale 2 --position-scale-method dynamic --position-original-length 9"
)
RUNS["unifpe_lm"] = RUNS["lm"].replace("alibi", "unifpe")
MAY = None
OTHER_TEXT = "pairs -> other_pairs"
# run, its change ("x -> y" replaces), what is told where it is resumed and averaged, and what where
# both are an ensemble; MAY: nothing is refused
CHANGES = [
    ("translation", "posenc_transformer_tiny -> transformer_tiny; --position-encoding cape ->",
     "trained with position:cape.* has position:sinusoidal", MAY),
    ("translation", "cape -> sinusoidal", "position:cape.* has position:sinusoidal", MAY),
    ("translation", "--position-global-shift 3", "global-shift:5.* has .*global-shift:3", MAY),
    ("translation", "--no-source-eos", "has position:cape.*source-eos:no", MAY),
    ("translation", "--prepend-source-bos", "has position:cape.*source-bos:yes",
     "join models that take the same input"),
    ("translation", "--activation-fn gelu", "relu, .* has --activation-fn gelu;", MAY),
    ("translation", "--encoder-attention-heads 4", "heads 2, .* --encoder-attention-heads 4", MAY),
    ("translation", "--no-scale-embedding", "with no --no-scale-embedding, .* has --no-scale", MAY),
    ("translation", "--encoder-normalize-before", "with no --encoder-normalize-before", MAY),
    ("translation", "--layernorm-embedding", "with no --layernorm-embedding", MAY),
    ("translation", "--encoder-layers 1", "with --encoder-layers 2", MAY),
    ("translation", "--encoder-embed-dim 32 --decoder-embed-dim 32", "-embed-dim 64, .* 32", MAY),
    ("translation", "--share-all-embeddings ->", "with --share-all-embeddings,", MAY),
    ("translation", "--source-lang de --target-lang en", "en, --target-lang de, .* de, ",
     "trained to translate de to en, and en to de is asked for; give --source-lang de"),
    ("translation", "--truncate-source", *2 * ("with no --truncate-source, ",)),
    ("translation", OTHER_TEXT, "with training text .* has training text", MAY),
    ("translation", "pairs -> other_dictionary", "with dictionaries .* has dictionaries",
     "the vocabulary is not the one"),
    ("lm", "--add-bos-token", *2 * ("with no --add-bos-token",)),
    ("lm", "--tokens-per-sample 16", "with --tokens-per-sample 32, .* 16", MAY),
    ("lm", "--sample-break-mode complete", "with --sample-break-mode none, ", MAY),
    ("lm", "--decoder-attention-heads 4", "with --decoder-attention-heads 2, ", MAY),
    ("lm", "posenc_transformer_lm_tiny -> transformer_lm; --position-encoding alibi ->"
     " --decoder-embed-dim 64 --decoder-ffn-embed-dim 128 --decoder-layers 2",
     "position:alibi.*, --decoder-attention-heads 2, .*position:sinusoidal", MAY),
    ("bert", "--layer-norm-eps 1e-12", "with no --layer-norm-eps, ", MAY),
    ("bert", "--position-segments per_head", "segments:none.* has .*segments:per_head", MAY),
    ("bert", "--mask-prob 0.3", "with --mask-prob 0.15, ", MAY),
    ("bert", "--untie-weights-roberta", "with no --untie-weights-roberta", MAY),
    ("bert", "posenc_masked_lm -> masked_lm", *2 * ("--task posenc_masked_lm, .* masked_lm",)),
    # what follows from the longest inputs, beside sizes of tables
    ("unifpe", "--max-source-positions 512", "below:1024.* has .*drawn-below:512/1024", MAY),
    ("unifpe_lm", "--max-target-positions 64", "drawn-below:32.* has .*drawn-below:64", MAY),
    ("dynamic", "--max-target-positions 64", "longest:1024, .* has .*longest:64", MAY),
    # what may change
    ("unifpe", "--max-source-positions 512 --position-drawn-below 1024", MAY, MAY),
    ("unifpe", "--position-drawn-below auto", MAY, MAY),
    ("dynamic", "--max-source-positions 512", MAY, MAY),
    ("translation", "--lr 0.001 --dropout 0.3 --attention-dropout 0.1", MAY, MAY),
    ("translation", "--max-update 9 --save-interval-updates 3 --keep-last-epochs 1", MAY, MAY),
    ("translation", "--max-tokens 300 --update-freq 2 --batch-size 9 --seed 3", MAY, MAY),
    ("translation", "--task posenc_translation -> --task translation", MAY, MAY),
    ("translation", "--max-source-positions 512 --eval-bleu", MAY, MAY),
    ("translation", "pairs -> same_pairs", MAY, MAY),
    ("lm", "--decoder-layerdrop 0.1 --checkpoint-activations", MAY, MAY),
    ("bert", "--patience 3 --disable-validation --encoder-layerdrop 0.1", MAY, MAY),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run):
    """A folder of binarised data: pairs, text, and both a little changed."""
    folder = tmp_path_factory.mktemp("runs")
    pieces = "--train 60 --valid 8 --test 4 --test-lengths 4-12 --quiet".split()
    run("python", "-m", "recipes.corpus", "--output", folder, *pieces)
    for language in ("en", "de"):
        lines = (folder / f"train.{language}").read_text().splitlines(keepends=True)
        (folder / f"other.{language}").write_text("".join(reversed(lines)))
    pairs = ["--source-lang", "en", "--target-lang", "de", "--validpref", folder / "valid"]

    def binarise(name, prefix, *words):
        words = [*words, "--trainpref", folder / prefix, "--destdir", folder / name]
        run("fairseq-preprocess", *words)

    binarise("pairs", "train", *pairs, "--joined-dictionary")
    binarise("text", "train.en", "--only-source", "--validpref", folder / "valid.en")
    known = [f"--{side}dict={folder / 'pairs' / 'dict.en.txt'}" for side in ("src", "tgt")]
    binarise("same_pairs", "train", *pairs, *known)
    binarise("other_pairs", "other", *pairs, *known)
    lines = (folder / "pairs" / "dict.en.txt").read_text().splitlines(keepends=True)
    (folder / "dict.txt").write_text("".join([lines[1], lines[0], *lines[2:]]))
    known = [f"--{side}dict={folder / 'dict.txt'}" for side in ("src", "tgt")]
    binarise("other_dictionary", "train", *pairs, *known)
    return folder


@pytest.fixture
def make(folder, monkeypatch):
    """A function that makes fairseq's trainer of a command line, in a new folder."""

    def make(words):
        data, *words = words.split()
        words = [str(folder / data), *COMMON.split(), *words, "--save-dir", str(folder / "new")]
        monkeypatch.setattr(sys, "argv", ["fairseq-train", *words])
        cfg = parsed(words)
        add_defaults(cfg)
        task = tasks.setup_task(cfg.task)
        torch.manual_seed(1)
        model = task.build_model(cfg.model)
        return Trainer(cfg, task, model, task.build_criterion(cfg.criterion))

    return make


def begin(trainer, save_dir, **changes):
    """Let fairseq load what a training begins with in a folder."""
    trainer.cfg.checkpoint.save_dir = str(save_dir)
    for name, value in changes.items():
        setattr(trainer.cfg.checkpoint, name, value)
    return checkpoint_utils.load_checkpoint(trainer.cfg.checkpoint, trainer)


def save(trainer, folder):
    """Save a training that has begun in a new folder; return the checkpoint."""
    _, batches = begin(trainer, folder)
    batches.next_epoch_itr()
    path = folder / "checkpoint_last.pt"
    state = {"train_iterator": batches.state_dict(), "val_loss": None}
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(str(path), state)
    return str(path)


@pytest.fixture
def trained(folder, make):
    """A function that returns the checkpoint of one of RUNS, made once."""

    def trained(name):
        path = folder / name / "checkpoint_last.pt"
        return str(path) if path.exists() else save(make(RUNS[name]), path.parent)

    return trained


def changed(words, change):
    """A command line with a change of CHANGES."""
    for one in change.split("; "):
        old, arrow, new = one.partition(" ->")
        assert old in words or not arrow
        words = words.replace(old, new.strip()) if arrow else f"{words} {one}"
    return words


def told(call, *arguments, **options):
    """What a call tells in one line when it refuses; None if it does not."""
    try:
        call(*arguments, **options)
    except UsageError as error:
        assert len(str(error).splitlines()) == 1
        return str(error)
    return None


def check(found, expected):
    assert (found is None) == (expected is MAY), found
    assert expected is MAY or re.search(expected, found), found


@pytest.mark.parametrize("name, change, one_run, together", CHANGES, ids=[c[1] for c in CHANGES])
def test_a_changed_run_is_refused_or_may_change(
    trained, make, tmp_path, name, change, one_run, together
):
    before, words = trained(name), changed(RUNS[name], change)
    content = Path(before).read_bytes()
    check(told(begin, make(words), Path(before).parent), one_run)
    assert Path(before).read_bytes() == content
    after = save(make(words), tmp_path)
    check(
        told(average, [after, before], across_runs=True), MAY if change == OTHER_TEXT else one_run
    )
    task = make(RUNS[name]).task
    check(told(checkpoint_utils.load_model_ensemble_and_task, [after, before], task=task), together)


@pytest.mark.parametrize("change, options, expected, warned", [
    (OTHER_TEXT, {"reset_dataloader": True}, MAY, 0),
    ("--source-lang de --target-lang en", {"reset_optimizer": True}, MAY, 1),
    ("--activation-fn gelu", {"reset_dataloader": True}, "--activation-fn relu", 0),
    ("posenc_transformer_tiny -> transformer_tiny; --position-encoding cape ->",
     {"reset_optimizer": True}, MAY, 1),
])  # fmt: skip
def test_resets_are_those_of_fairseq(trained, make, caplog, change, options, expected, warned):
    folder = Path(trained("translation")).parent
    trainer = make(changed(RUNS["translation"], change))
    check(told(begin, trainer, folder, **options), expected)
    loggers = run_comparison.logger.name, languages.logger.name
    assert sum(record.name in loggers for record in caplog.records) == warned


@pytest.mark.parametrize("change, expected", [(OTHER_TEXT, MAY), ("--activation-fn gelu", "relu")])
def test_an_older_checkpoint_tells_by_its_options_alone(trained, make, tmp_path, change, expected):
    state = load_checkpoint(trained("translation"))
    del state[run_comparison.METADATA_KEY], state["cfg"]["task"]["source_lang"]
    torch.save(state, tmp_path / "checkpoint_last.pt")
    check(told(begin, make(changed(RUNS["translation"], change)), tmp_path), expected)


@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("tokens", [100, 400])
def test_other_batches_go_on_at_the_same_place_of_the_epoch(make, tmp_path, tokens, records):
    trainer = make(RUNS["translation"])
    _, before = begin(trainer, tmp_path)
    epoch = before.next_epoch_itr()
    for _ in range(len(epoch) // 2):
        next(epoch)
    trainer.consolidate_optimizer()
    state = before.state_dict()
    if not records:  # as fairseq, and earlier versions
        del state["batches"]
        state["iterations_in_epoch"] = 10 * len(epoch)
    trainer.save_checkpoint(
        str(tmp_path / "checkpoint_last.pt"), {"train_iterator": state, "val_loss": None}
    )
    resumed = make(RUNS["translation"].replace("pairs", f"pairs --max-tokens {tokens}", 1))
    if not records:
        assert "or give --reset-dataloader" in told(begin, resumed, tmp_path)
        return
    _, after = begin(resumed, tmp_path)
    assert len(after) != len(before)
    assert after.iterations_in_epoch / len(after) == pytest.approx(0.5, abs=1 / len(after))
