import argparse
import math
import os
import sys
import weakref
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import averaging, cli


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


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_average_is_fairseqs_to_the_last_bit(save, count):
    models = [model(seed) for seed in range(count)]
    paths = [save(f"{i}.pt", state(m)) for i, m in enumerate(models)]
    found = averaging.average(paths)["model"]
    expected = slow_average(models)
    assert list(found) == list(models[0])
    for name in expected:
        assert found[name].dtype == expected[name].dtype, name
        assert torch.equal(found[name], expected[name]), name


def test_everything_but_the_model_is_of_the_first_checkpoint(save):
    paths = [save(f"{i}.pt", state(model(i), updates=10 - i, value=i)) for i in range(3)]
    found, first = averaging.average(paths), torch.load(paths[0])
    del found["model"], first["model"]
    assert found == first


def test_one_checkpoint_at_a_time_is_in_memory(save, monkeypatch):
    class Watched(OrderedDict):
        """A dictionary that can be referred to weakly."""

    alive, paths = [], [save(f"{i}.pt", state(model(i))) for i in range(4)]

    def load(path):
        assert not [name for name, reference in alive if reference() is not None]
        loaded = Watched(torch.load(path))
        loaded["model"] = Watched(loaded["model"])
        alive.extend((path, weakref.ref(part)) for part in (loaded, loaded["model"]))
        alive.extend((path, weakref.ref(tensor)) for tensor in loaded["model"].values())
        return loaded

    monkeypatch.setattr(averaging, "load_checkpoint", load)
    averaging.average(paths)
    assert len(alive) > 4 * len(paths)


@pytest.mark.parametrize(
    "change",
    [
        {"scalar": None},
        {"other": torch.ones(1)},
        {"half": torch.ones(1, 5).half()},
    ],
)
def test_other_models_are_refused(save, change):
    other = {k: v for k, v in {**model(1), **change}.items() if v is not None}
    paths = [save("1.pt", state(model(0))), save("2.pt", state(other))]
    with pytest.raises(UsageError, match=f"same model.*{next(iter(change))}"):
        averaging.average(paths)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["half", "bfloat", "double", "scalar"])
def test_what_is_not_finite_is_refused(save, name, number):
    bad = model(1)
    bad[name] = bad[name].clone()
    bad[name].view(-1)[-1] = number
    paths = [save("1.pt", state(model(0))), save("2.pt", state(bad))]
    with pytest.raises(UsageError, match=rf"2\.pt holds NaN or infinity, in {name}"):
        averaging.average(paths)


def test_what_is_true_or_false_is_kept_if_all_agree(save):
    mask, other = torch.tensor([True, False]), torch.tensor([True, True])
    paths = [
        save(f"{i}.pt", state({**model(i), "mask": m})) for i, m in enumerate((mask, mask, other))
    ]
    assert torch.equal(averaging.average(paths[:2])["model"]["mask"], mask)
    with pytest.raises(UsageError, match=r"2\.pt and .*0\.pt differ in mask"):
        averaging.average(paths)
    number = save("3.pt", state({**model(3), "mask": mask.long()}))
    with pytest.raises(UsageError, match="same model.*mask"):
        averaging.average([paths[0], number])


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
    with pytest.raises(UsageError, match=r"2\.pt was .*scale:1\.1\|.*0\.pt with .*scale:1\|"):
        averaging.average(paths)


def test_the_last_are_chosen_by_number_newest_first(save, tmp_path):
    for name in ("9", "10", "100", "_best", "_last", ".best_loss_3.21", "12-shard0", "_average"):
        save(f"checkpoint{name}.pt")
    found = averaging.last(averaging.find([str(tmp_path)]), 3)
    assert [Path(path).name for path in found] == [f"checkpoint{n}.pt" for n in (100, 10, 9)]


def test_checkpoints_of_updates_are_ordered_by_updates(save):
    paths = [save(f"checkpoint_{name}.pt") for name in ("2_900", "2_1000", "1_100", "10_99")]
    found = averaging.last(paths, 2)
    assert [Path(path).name for path in found] == ["checkpoint_2_1000.pt", "checkpoint_2_900.pt"]


def test_epochs_and_updates_are_not_mixed(save):
    paths = [save(f"checkpoint{name}.pt") for name in ("1", "2", "_2_30", "_3_40")]
    with pytest.raises(UsageError, match="--by epochs or --by updates"):
        averaging.last(paths, 2)
    assert averaging.last(paths, 2, "epochs") == [paths[1], paths[0]]
    assert averaging.last(paths, 2, "updates") == [paths[3], paths[2]]


@pytest.mark.parametrize(("maximize", "expected"), [(False, [1, 3]), (True, [0, 2])])
def test_the_best_are_chosen_in_the_direction_of_the_metric(save, maximize, expected):
    values = [9.0, 1.0, 8.0, 2.0]
    paths = [
        save(f"checkpoint{i}.pt", updates=i, value=value, maximize=maximize)
        for i, value in enumerate(values)
    ]
    assert averaging.best(paths, 2) == [paths[i] for i in expected]


def test_of_equally_good_checkpoints_the_later_is_better(save):
    paths = [save(f"checkpoint{i}.pt", updates=i) for i in range(3)]
    assert averaging.best(paths, 2) == [paths[2], paths[1]]


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


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_checkpoints_without_a_metric_are_not_best(save, value):
    paths = [
        save("checkpoint1.pt", updates=1, value=value),
        save("checkpoint2.pt", updates=2, value=3.0),
        save("checkpoint3.pt", updates=3, value=4.0),
    ]
    assert averaging.best(paths, 2) == paths[1:]


def test_options_in_a_namespace_are_understood(save):
    old = argparse.Namespace(best_checkpoint_metric="bleu", maximize_best_checkpoint_metric=True)
    paths = [
        save(
            f"checkpoint{i}.pt", {**state({}, updates=i, value=float(i)), "args": old, "cfg": None}
        )
        for i in range(3)
    ]
    assert averaging.best(paths, 1) == [paths[2]]


def test_different_metrics_are_not_compared(save):
    paths = [save("checkpoint1.pt"), save("checkpoint2.pt", updates=2, metric="bleu")]
    with pytest.raises(UsageError, match="different metrics"):
        averaging.best(paths, 1)


def test_checkpoints_of_other_programs_are_refused(save):
    for content in ({"model": {}}, [1]):
        with pytest.raises(UsageError, match="no checkpoint of fairseq-train"):
            averaging.best([save("checkpoint1.pt", content)], 1)
    with pytest.raises(UsageError, match="has no model"):
        averaging.average([save("x.pt", {"weights": 1})])


@pytest.mark.parametrize("choose", [averaging.last, averaging.best])
def test_too_few_checkpoints_are_listed(save, choose):
    paths = [save("checkpoint7.pt"), save("checkpoint_last.pt")]
    with pytest.raises(UsageError, match="found: checkpoint7.pt, checkpoint_last.pt"):
        choose(paths, 2)


@pytest.mark.parametrize("choose", [averaging.last, averaging.best])
def test_runs_are_not_mixed(save, tmp_path, choose):
    (tmp_path / "other").mkdir()
    paths = [save("checkpoint1.pt"), save("other/checkpoint2.pt")]
    with pytest.raises(UsageError, match="2 folders"):
        choose(paths, 2)


@pytest.fixture
def run(monkeypatch):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["posenc", "average", *arguments])
        cli.main()

    return run


def test_script_averages_and_leaves_nothing_else(save, run, tmp_path, capsys):
    for i in range(1, 4):
        save(f"checkpoint{i}.pt", state({"w": torch.tensor([float(i)])}))
    run("--inputs", str(tmp_path), "--last", "2", "--output", str(tmp_path / "out" / "average.pt"))
    assert torch.load(tmp_path / "out" / "average.pt")["model"]["w"].tolist() == [2.5]
    assert os.listdir(tmp_path / "out") == ["average.pt"]
    assert "checkpoint3.pt" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--inputs", "{folder}"], "--last N or --best N"),
        (["--inputs", "{folder}/missing.pt"], "does not exist"),
        (["--inputs", "{folder}", "--best", "1", "--by", "epochs"], "--by goes with --last"),
        (["--inputs", "{folder}/cut.pt"], "cut.pt"),
        (["--inputs", "{folder}/checkpoint1.pt", "{folder}/out.pt"], "one of the checkpoints"),
    ],
)
def test_script_refuses_and_writes_nothing(save, run, tmp_path, arguments, message):
    whole = Path(save("checkpoint1.pt")).read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    if "out.pt" in arguments[-1]:
        save("out.pt")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(UsageError, match=message):
        run(*(a.format(folder=tmp_path) for a in arguments), "--output", str(tmp_path / "out.pt"))
    assert sorted(os.listdir(tmp_path)) == before


def test_the_average_loads_as_a_fairseq_model(save, tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"dict.{language}.txt").write_text("a 2\nb 1\n")
    arguments = f"{tmp_path} --arch transformer_tiny -s en -t de".split()
    parser = options.get_training_parser()
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, arguments))
    task = tasks.setup_task(cfg.task)
    models = [task.build_model(cfg.model) for _ in range(2)]
    plain = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    paths = [
        save(f"checkpoint{i}.pt", {**state(model.state_dict()), "cfg": plain})
        for i, model in enumerate(models)
    ]
    output = str(tmp_path / "average.pt")
    averaging.save_average(paths, output)
    (loaded,), _ = checkpoint_utils.load_model_ensemble([output], task=task)
    # The decoder's only: fairseq 0.12.2's encoder has copies of parameters that it does not load.
    first, second, mean = (dict(m.decoder.named_parameters()) for m in (*models, loaded))
    assert all(torch.equal((first[name] + second[name]) / 2, mean[name]) for name in first)
