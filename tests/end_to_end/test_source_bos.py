"""Sources that start with BOS (--prepend-source-bos): a model gets what it was trained with.

Programs of fairseq run in this process. Earlier versions did not sign BOS, and under Hydra they
left it to the options of the task.
"""

import logging
from argparse import Namespace

import pytest
import torch
from fairseq import utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq_cli import hydra_train
from omegaconf import OmegaConf

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools import averaging
from fairseq_posenc.tools.bert import predict
from fairseq_posenc.tools.convert.stock_fairseq import to_fairseq

BOS = "--prepend-source-bos"
KINDS = ["command line", "Hydra", "earlier command line", "earlier Hydra"]
each_kind = pytest.mark.parametrize("kind", KINDS)
OURS = ["--arch", "posenc_transformer_tiny", "--position-encoding", "cape"]


class Runs:
    """Small trainings in one folder, and what is made of them."""

    def __init__(self, data, folder, trains, translates):
        self.data, self.folder, self.trains, self.translates = str(data), folder, trains, translates

    def path(self, name):
        return str(self.folder / name / "checkpoint_last.pt")

    def train(self, name, *flags, updates=2, model=OURS):
        """Train from the command line, or go on with that."""
        words = [self.data, *model, "--task", "posenc_translation", "--max-update", str(updates)]
        words += "--optimizer adam --lr 0.003 --max-tokens 200 --cpu --num-workers 0".split()
        words += ["--no-epoch-checkpoints", "--disable-validation", *flags]
        words += ["--save-dir", str(self.folder / name)]
        self.trains("fairseq-train", *words)

    def train_by_hydra(self, name, *flags, updates=2):
        """Train as ``fairseq-hydra-train`` does with these flags of the command line."""
        task = {"_name": "posenc_translation", "data": self.data, "prepend_source_bos": False}
        checkpoint = {"save_dir": str(self.folder / name), "no_epoch_checkpoints": True}
        task["prepend_source_bos"] = BOS in flags
        if "--finetune-from-model" in flags:
            checkpoint["finetune_from_model"] = flags[1]
        groups = {
            "task": task,
            "model": {"_name": OURS[1], "position_encoding": OURS[3]},
            "criterion": {"_name": "cross_entropy"},
            "optimizer": {"_name": "adam"},
            "lr_scheduler": {"_name": "fixed"},
            "optimization": {"lr": [0.003], "max_update": updates},
            "dataset": {"max_tokens": 200, "num_workers": 0, "disable_validation": True},
            "checkpoint": checkpoint,
            "common": {"cpu": True, "reset_logging": False},
        }
        hydra_train._hydra_main(OmegaConf.merge(OmegaConf.structured(FairseqConfig), groups))

    def generate(self, names, *flags, task="posenc_translation"):
        """Return translations, scores and sources of the test set by ``fairseq-generate``."""
        words = [self.data, "--task", task, "--source-lang", "en", "--target-lang", "de", "--cpu"]
        words += ["--path", ":".join(map(self.path, names)), "--beam", "2", "--max-len-b", "8"]
        printed = self.translates("fairseq-generate", *words, *flags)
        return [line for line in printed.splitlines() if line[:2] in ("S-", "H-")]

    def copy(self, name, new, signed=True, recorded=True):
        """Copy a checkpoint, as earlier versions wrote it if asked for."""
        state = load_checkpoint(self.path(name))
        model = state["cfg"]["model"]
        found = vars(model) if isinstance(model, Namespace) else model
        if not signed:
            found["position_signature"] = found["position_signature"].replace("|source-bos:yes", "")
        if not recorded:
            found.pop("prepend_source_bos", None)
        (self.folder / new).mkdir()
        torch.save(state, self.path(new))

    def signature(self, name):
        return signatures.of_checkpoint(load_checkpoint(self.path(name)))


@pytest.fixture(scope="module")
def runs(binarised, tmp_path_factory, trains, translates):
    """Models of every kind, a "plain" one, and what is generated from them if BOS is asked for."""
    runs = Runs(binarised, tmp_path_factory.mktemp("runs"), trains, translates)
    runs.train("plain")
    runs.train("command line", BOS)
    runs.train_by_hydra("Hydra", BOS)
    runs.train("stock", BOS, model=["--arch", "transformer_tiny"])
    runs.copy("command line", "earlier command line", signed=False)
    runs.copy("Hydra", "earlier Hydra", signed=False, recorded=False)
    runs.told = runs.generate(["command line"], BOS)
    return runs


@each_kind
def test_every_program_gives_a_model_its_bos(runs, kind, tmp_path):
    assert runs.generate([kind]) == runs.told
    assert "|source-bos:yes" in runs.signature(kind)
    _, task, _ = predict.load_any(runs.path(kind), runs.data)
    assert task.cfg.prepend_source_bos
    folder, name = runs.path(kind).rsplit("/", 1)
    hub = PosencTransformerModel.from_pretrained(folder, name, runs.data, cpu=True, bpe=None)
    source = hub.task.build_dataset_for_inference([torch.tensor([5, 2])], [2])[0]["source"]
    assert source.tolist() == [0, 5, 2]
    with pytest.raises(UsageError, match=f"{BOS}.*--bos-in-text"):
        to_fairseq(runs.path(kind), str(tmp_path / "stock.pt"))
    assert "<s> " in to_fairseq(runs.path(kind), str(tmp_path / "stock.pt"), bos_in_text=True)[-1]


@pytest.mark.parametrize("kind", [*KINDS, "stock"])
def test_what_cannot_go_with_bos_is_refused(runs, kind):
    with pytest.raises(UsageError, match=f"{BOS}.*give --task posenc_translation"):
        runs.generate([kind], task="translation")
    for names in ([kind, "plain"], ["plain", kind]):
        # our models refuse fairseq's task one by one
        for task in ("posenc_translation", "translation")[: 1 + (kind == "stock")]:
            with pytest.raises(UsageError, match=f"{BOS}.*join models that take the same input"):
                runs.generate(names, task=task)
    with pytest.raises(UsageError, match="--match-source-len counts BOS"):
        runs.generate([kind], "--match-source-len")
    with pytest.raises(UsageError, match="source-bos:yes.*average checkpoints of one run"):
        averaging.average([runs.path("plain"), runs.path(kind)])


def test_a_model_without_bos_needs_no_task_of_ours_and_gets_none(runs):
    assert "source-bos" not in runs.signature("plain")
    assert runs.generate(["plain"]) == runs.generate(["plain"], task="translation")
    with pytest.raises(UsageError, match="leave the option out"):
        runs.generate(["plain"], BOS)


@pytest.mark.parametrize("name", [*KINDS, "plain"])
def test_a_run_is_resumed_with_bos_as_it_began(runs, name):
    train = runs.train_by_hydra if "Hydra" in name else runs.train
    refused, resumed = ([BOS], []) if name == "plain" else ([], [BOS])
    runs.copy(name, f"{name}, resumed")
    with pytest.raises(UsageError, match=f"source-bos:yes.*{BOS}.* to resume it"):
        train(f"{name}, resumed", *refused, updates=3)
    train(f"{name}, resumed", *resumed, updates=3)
    assert signatures.same(runs.signature(f"{name}, resumed"), runs.signature(name))


@each_kind
def test_fine_tuning_keeps_bos(runs, kind, caplog):
    train = runs.train_by_hydra if "Hydra" in kind else runs.train
    new, start = f"{kind}, fine-tuned", ["--finetune-from-model", runs.path(kind)]
    with caplog.at_level(logging.INFO, "fairseq_posenc"):
        train(new, *start)
        train(new, *start, updates=3)  # goes on
    assert caplog.text.count("sources start with BOS, as") == 2
    assert not [record for record in caplog.records if "other positions" in record.getMessage()]
    assert signatures.same(runs.signature(new), runs.signature(kind))
    assert runs.generate([new]) == runs.generate([new], BOS)


def test_fine_tuning_may_begin_with_bos_and_needs_our_task_for_it(runs, caplog):
    runs.train("plain, with BOS", "--finetune-from-model", runs.path("plain"), BOS)
    warned = [r.getMessage() for r in caplog.records if "other positions" in r.getMessage()]
    assert len(warned) == 1 and "|source-bos:yes" in warned[0].split("this run has")[1]
    with pytest.raises(UsageError, match="give --task posenc_translation"):
        start = ["--finetune-from-model", runs.path("command line")]
        runs.train("of fairseq's task", *start, "--task", "translation")


def test_truncation_leaves_room_for_bos(runs, caplog):
    limit = ["--truncate-source", "--max-source-positions", "9", BOS]
    skip = "--skip-invalid-size-inputs-valid-test --required-batch-size-multiple 1".split()
    runs.train("cut", *limit, *skip)
    assert len(runs.generate(["cut"], *limit[:3], *skip)) == 2 * 20  # S- and H-lines
    assert "invalid sizes" not in caplog.text  # what is too long would be skipped with these words


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("kind", ["hard", "soft"])
@torch.no_grad()
def test_alignments_count_sources_as_they_are_in_the_data(runs, kind, scored):
    model, task, _ = predict.load_any(runs.path("command line"), runs.data)
    task.load_dataset("test")
    pairs = task.dataset("test")
    sample = pairs.collater([pairs[number] for number in range(4)])
    how = Namespace(beam=2, max_len_b=8, print_alignment=kind, score_reference=scored)
    found = task.inference_step(task.build_generator([model], how), [model], sample)
    for row, hypotheses in zip(sample["net_input"]["src_tokens"], found):
        source = utils.strip_pad(row, 1)[None]
        for hypothesis in hypotheses:
            target = hypothesis["tokens"][None]
            shifted = torch.cat([target[:, -1:], target[:, :-1]], dim=1)
            # (target, source), both with EOS, the source with BOS
            attention = model(source, torch.tensor([source.size(1)]), shifted)[1]["attn"][0][0]
            if kind == "soft" and not scored:
                printed = torch.tensor([[*map(float, row)] for row in hypothesis["alignment"]])
                assert torch.allclose(printed, attention[:, 1:], atol=2e-6)
                continue
            best = attention[:-1, 1:-1].argmax(dim=1).tolist()
            assert hypothesis["alignment"] == [(s, t) for t, s in enumerate(best)]
