"""Averages of checkpoints: fairseq's arithmetic, which checkpoints, and what is refused."""

import argparse
import math
import os
import weakref
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import averaging


def model(seed):
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
        return torch.randn(*shape, generator=generator)

    tied = random(50, 7)
    return OrderedDict(
        embedding=tied,
        output=tied,
        half=random(40, 5).half(),
        bfloat=random(9, 3).bfloat16(),
        double=random(4).double(),
        steps=torch.tensor([seed, 2 - seed]),
        scalar=random(()),
    )


def state(parameters, updates=1, value=1.0, maximize=False, metric="loss"):
    checkpoint = {"best_checkpoint_metric": metric, "maximize_best_checkpoint_metric": maximize}
    return {
        "args": None,
        "cfg": {"checkpoint": checkpoint},
        "model": parameters,
        "optimizer_history": [{"num_updates": updates, "lr_scheduler_state": {}}],
        "extra_state": {"val_loss": value},
    }


@pytest.fixture
def save(tmp_path):
    def save(name, content=None, **about):
        path = str(tmp_path / name)
        torch.save(state({"w": torch.ones(1)}, **about) if content is None else content, path)
        return path

    return save


def slow_average(models):
    """fairseq's arithmetic, number by number in the order of the files."""
    result = {}
    for name, first in models[0].items():
        wide = first.dtype in (torch.float16, torch.bfloat16)
        parts = [m[name].float() if wide else m[name] for m in models]
        flat = []
        for numbers in zip(*(part.flatten() for part in parts)):
            total = numbers[0]
            for number in numbers[1:]:
                total = total + number
            flat.append(total / len(models) if first.is_floating_point() else total // len(models))
        result[name] = torch.stack(flat).view(first.shape)
    return result


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_average_is_fairseqs_to_the_last_bit_and_the_rest_is_of_the_first(save, count):
    models = [model(seed) for seed in range(count)]
    paths = [save(f"{i}.pt", state(m, updates=9 - i, value=i)) for i, m in enumerate(models)]
    found, first, expected = averaging.average(paths), torch.load(paths[0]), slow_average(models)
    assert list(found["model"]) == list(models[0])
    for name, weights in found["model"].items():
        assert weights.dtype == expected[name].dtype, name
        assert torch.equal(weights, expected[name]), name
    del found["model"], first["model"]
    assert found == first


def test_one_checkpoint_at_a_time_is_in_memory(save, monkeypatch):
    class Watched(OrderedDict):
        """A dictionary that can be referred to weakly."""

    alive, paths = [], [save(f"{i}.pt", state(model(i))) for i in range(4)]

    def load(path, mmap=False):
        assert not [name for name, reference in alive if reference() is not None]
        loaded = Watched(torch.load(path))
        loaded["model"] = Watched(loaded["model"])
        alive.extend((path, weakref.ref(part)) for part in (loaded, loaded["model"]))
        alive.extend((path, weakref.ref(tensor)) for tensor in loaded["model"].values())
        return loaded

    monkeypatch.setattr(averaging, "load_checkpoint", load)
    averaging.average(paths)
    assert len(alive) > 4 * len(paths)


def test_the_optimizers_state_takes_no_memory(save):
    """Adam's two averages are twice the model; the average of models is without them."""

    def megabytes():
        lines = Path("/proc/self/status").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith("RssAnon:")]
        return int(line.split()[1]) / 1024

    # a pool of freed memory from other tests could hide it: this is a mapping of its own
    moments = {"state": {0: {"exp_avg": torch.ones(16 * 2**20)}}}  # 64 MB
    paths = [
        save(f"{i}.pt", {**state({"w": torch.ones(1)}), "last_optimizer_state": moments})
        for i in range(2)
    ]
    del moments
    before = megabytes()
    average = averaging.average(paths)
    assert megabytes() - before < 16
    assert bool(average["last_optimizer_state"]["state"][0]["exp_avg"].eq(1).all())


def test_a_compressed_archive_is_read_too(save, tmp_path):
    """Its bytes cannot be mapped."""
    squeezed = str(tmp_path / "squeezed.pt")
    packed = zipfile.ZipFile(squeezed, "w", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(save("1.pt")) as source, packed as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert averaging.average([squeezed])["model"]["w"].tolist() == [1]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"scalar": None}, "same model.*scalar"),
        ({"other": torch.ones(1)}, "same model.*other"),
        ({"half": torch.ones(1, 5).half()}, "same model.*half"),
        ({"mask": torch.tensor([0, 1])}, "same model.*mask"),
        ({"mask": torch.tensor([True, True])}, r"2\.pt and .*1\.pt differ in mask"),
        ({"half": torch.tensor([math.nan] * 200).half().view(40, 5)}, "NaN or infinity, in half"),
        ({"bfloat": torch.full((9, 3), math.inf).bfloat16()}, "NaN or infinity, in bfloat"),
        ({"scalar": torch.tensor(-math.inf)}, r"2\.pt holds NaN or infinity, in scalar"),
    ],
)
def test_what_does_not_fit_or_is_not_finite_is_refused(save, change, words):
    mask = torch.tensor([True, False])
    first = save("1.pt", state({**model(0), "mask": mask}))
    other = {k: v for k, v in {**model(1), "mask": mask, **change}.items() if v is not None}
    with pytest.raises(UsageError, match=words):
        averaging.average([first, save("2.pt", state(other))])
    assert torch.equal(averaging.average([first, first])["model"]["mask"], mask)


def test_other_positions_are_refused(save):
    def trained(name, **others):
        options = argparse.Namespace(position_encoding="cape", **others)
        return save(name, {**state(model(0)), "cfg": {"model": options}})

    signature = "position:cape|source-scale:{}|version:{}"
    paths = [
        trained(f"{i}.pt", position_signature=signature.format(*fields))
        for i, fields in enumerate([("1", "1"), ("1", "2"), ("1.1", "1")])
    ]
    averaging.average(paths[:2])
    with pytest.raises(UsageError, match=r"2\.pt was .*scale:1\.1\|.*0\.pt has .*scale:1\|"):
        averaging.average(paths)


RUN = {"arch": "a", "data": "/old/bin", "save_dir": "/old/run", "seed": 1, "criterion": "c"}


@pytest.mark.parametrize("old", [True, False], ids=["args", "cfg"])
@pytest.mark.parametrize(
    "name, value, told",
    [
        ("arch", "b", "--arch is b, not a"),
        ("data", "/old/other", "--data is other, not bin"),
        ("save_dir", "/old/run2/", "--save-dir is run2, not run"),
        ("seed", 2, "--seed is 2, not 1"),
        ("criterion", "d", "--criterion is d, not c"),
        ("optimizer", "adam", ""),  # the first does not record it
        ("save_dir", "/new/run/", ""),  # a run that was moved
    ],
)
def test_different_runs_are_averaged_only_if_asked_for(
    save, posenc, tmp_path, old, name, value, told
):
    def trained(file, options):
        args = argparse.Namespace(**options)
        groups = {"task": {"data": args.data}, "checkpoint": {"save_dir": args.save_dir}}
        groups["common"], groups["criterion"] = {"seed": args.seed}, {"_name": args.criterion}
        groups["optimizer"], groups["model"] = {"_name": vars(args).get("optimizer")}, args
        found = {"args": args} if old else {"args": None, "cfg": groups}
        return save(file, {"model": {"w": torch.ones(1)}, **found})

    paths = [trained("1.pt", RUN), trained("2.pt", {**RUN, name: value})]
    command = ["average", "--inputs", *paths, "--output", tmp_path / "out.pt"]
    if told:
        with pytest.raises(
            UsageError, match=f"2.pt is of another training than .*1.pt: its {told};"
        ):
            posenc(*command)
        assert not (tmp_path / "out.pt").exists()
        command.append("--across-runs")
    posenc(*command)
    assert (tmp_path / "out.pt").exists()


def test_models_of_other_dictionaries_are_never_averaged(save):
    def trained(name, dictionaries):
        options = argparse.Namespace(dictionary_hash=dictionaries)
        return save(name, {**state(model(0)), "cfg": {"model": options}})

    paths = [trained(f"{i}.pt", known) for i, known in enumerate([None, "a", "a", "b"])]
    averaging.average(paths[:3])
    with pytest.raises(UsageError, match="3.pt was trained with other dictionaries than .*1.pt"):
        averaging.average(paths, across_runs=True)


@pytest.mark.parametrize("model, task, change, told", [
    ("posenc_transformer_tiny", "posenc_translation", {"activation_fn": "gelu"},
     "activation-fn gelu"),
    ("posenc_transformer_tiny", "posenc_translation", {"source_lang": "fr"}, "source-lang fr"),
    ("posenc_transformer_lm_tiny", "language_modeling", {"decoder_layers": 3}, "decoder-layers 3"),
    ("posenc_bert_tiny", "posenc_masked_lm", {"mask_prob": 0.3}, "mask-prob 0.3"),
    ("transformer_tiny", "posenc_multilingual", {"decoder_langtok": True}, "decoder-langtok"),
])  # fmt: skip
def test_the_program_knows_what_our_models_and_tasks_declare(
    save, fails, tmp_path, model, task, change, told
):
    def trained(name, **options):
        groups = {"arch": model, **options}, {"_name": task, "source_lang": "en", **options}
        cfg = {"model": argparse.Namespace(**groups[0]), "task": groups[1]}
        return save(name, {"model": {"w": torch.ones(1)}, "args": None, "cfg": cfg})

    paths = [trained("1.pt"), trained("2.pt", **change)]
    command = ["posenc", "average", "--across-runs", "--output", tmp_path / "out.pt", "--inputs"]
    assert f"2.pt was trained with --{told}, " in fails(*command, *paths)


def names_of(paths):
    return [Path(path).name[len("checkpoint") : -len(".pt")] for path in paths]


def test_the_last_are_chosen_by_number_newest_first(save, tmp_path):
    for name in ("9", "10", "100", "_best", "_last", ".best_loss_3.21", "12-shard0", "_average"):
        save(f"checkpoint{name}.pt")
    assert names_of(averaging.last(averaging.find([str(tmp_path)]), 3)) == ["100", "10", "9"]
    paths = [save(f"checkpoint_{name}.pt") for name in ("2_900", "2_1000", "1_100", "10_99")]
    assert names_of(averaging.last(paths, 2)) == ["_2_1000", "_2_900"]
    both = averaging.find([str(tmp_path)])
    with pytest.raises(UsageError, match="--by epochs or --by updates"):
        averaging.last(both, 2)
    assert names_of(averaging.last(both, 2, "epochs")) == ["100", "10"]
    assert names_of(averaging.last(both, 1, "updates")) == ["_2_1000"]


@pytest.mark.parametrize(
    "maximize, values, expected",
    [
        (False, [9.0, 1.0, 8.0, 2.0], ["1", "3"]),
        (True, [9.0, 1.0, 8.0, 2.0], ["0", "2"]),
        (False, [1.0, 1.0, 1.0], ["2", "1"]),  # of equally good ones the later
        (True, [None, math.inf, math.nan, 3.0, 4.0], ["4", "3"]),
    ],
)
@pytest.mark.parametrize("old", [False, True])
def test_the_best_are_chosen_in_the_direction_of_the_metric(save, maximize, values, expected, old):
    paths = []
    for i, value in enumerate(values):
        content = state({}, updates=i, value=value, maximize=maximize)
        if old:  # options in a namespace, up to fairseq 0.10
            content["args"] = argparse.Namespace(**content.pop("cfg")["checkpoint"])
        paths.append(save(f"checkpoint{i}.pt", content))
    assert names_of(averaging.best(paths, 2)) == expected


def test_copies_of_a_checkpoint_count_once(save):
    paths = [
        save("checkpoint1.pt", updates=10, value=1.0),
        save("checkpoint.best_loss_1.0003.pt", updates=10, value=1.0),
        save("checkpoint.best_loss_1.1003.pt", updates=13, value=1.1),
        save("checkpoint_best.pt", updates=10, value=1.0),
    ]
    assert averaging.best(paths, 2) == [paths[0], paths[2]]
    with pytest.raises(UsageError, match="2 checkpoints to choose from"):
        averaging.best(paths, 3)


def test_checkpoints_of_other_programs_metrics_and_runs_are_refused(save, tmp_path):
    for content in ({"model": {}}, [1]):
        with pytest.raises(UsageError, match="not a checkpoint of fairseq-train"):
            averaging.best([save("checkpoint1.pt", content)], 1)
    with pytest.raises(UsageError, match="has no model"):
        averaging.average([save("x.pt", {"weights": 1})])
    paths = [save("checkpoint1.pt"), save("checkpoint2.pt", updates=2, metric="bleu")]
    with pytest.raises(UsageError, match="different metrics"):
        averaging.best(paths, 1)
    (tmp_path / "other").mkdir()
    for choose in (averaging.last, averaging.best):
        with pytest.raises(UsageError, match="2 folders"):
            choose([paths[0], save("other/checkpoint2.pt")], 2)
        with pytest.raises(UsageError, match="found: checkpoint1.pt, checkpoint_last.pt"):
            choose([paths[0], save("checkpoint_last.pt")], 2)


def test_the_command_averages_and_leaves_nothing_else(save, posenc, tmp_path):
    for i in range(1, 4):
        save(f"checkpoint{i}.pt", state({"w": torch.tensor([float(i)])}))
    output = tmp_path / "out" / "average.pt"
    printed = posenc("average", "--inputs", tmp_path, "--last", 2, "--output", output)
    assert torch.load(output)["model"]["w"].tolist() == [2.5]
    assert os.listdir(tmp_path / "out") == ["average.pt"]
    assert "checkpoint3.pt" in printed.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--inputs", "{folder}"], "--last N or --best N"),
        (["--inputs", "{folder}/missing.pt"], "does not exist"),
        (["--inputs", "{folder}", "--best", "1", "--by", "epochs"], "--by goes with --last"),
        (["--inputs", "{folder}/cut.pt"], "cut.pt"),
        (["--inputs", "{folder}/checkpoint1.pt", "{folder}/out.pt"], "would be lost"),
    ],
)
def test_the_command_refuses_and_writes_nothing(save, posenc, tmp_path, arguments, message):
    whole = Path(save("checkpoint1.pt")).read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    if "out.pt" in arguments[-1]:
        save("out.pt")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(UsageError, match=message):
        words = (word.format(folder=tmp_path) for word in arguments)
        posenc("average", *words, "--output", tmp_path / "out.pt")
    assert sorted(os.listdir(tmp_path)) == before
