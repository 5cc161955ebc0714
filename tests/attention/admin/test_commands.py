"""Both passes by the real command lines, and what follows them."""

import json
import math
import random

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools import averaging
from fairseq_posenc.tools.translation.admin_profile import write_profile

OPTIONS = "--user-dir fairseq_posenc --task posenc_translation --arch posenc_transformer_tiny"
OPTIONS += " --position-encoding shape --position-max-shift 9 --share-all-embeddings --cpu"
OPTIONS += " --optimizer posenc_radam --radam-betas (0.9,0.98) --lr 0.01 --dropout 0.1"
OPTIONS += " --max-tokens 100 --num-workers 0 --seed 3 --disable-validation"
TRAINING = "--max-update 6 --save-interval-updates 3 --log-format json --log-interval 1"


@pytest.fixture
def binarised(run, tmp_path):
    """A folder with 120 pairs, in which the target is the source the other way round."""
    generator = random.Random(1)
    lines = [generator.choices("abcdefgh", k=generator.randint(2, 9)) for _ in range(120)]
    for language, step in (("en", 1), ("de", -1)):
        text = "".join(" ".join(line[::step]) + "\n" for line in lines)
        (tmp_path / f"train.{language}").write_text(text)
    run(
        *"fairseq-preprocess --source-lang en --target-lang de --joined-dictionary".split(),
        *(f"--{split}pref={tmp_path / 'train'}" for split in ("train", "valid", "test")),
        *("--destdir", tmp_path / "bin"),
    )
    return tmp_path / "bin"


def weights(path):
    return load_checkpoint(path)["model"]


def test_from_profile_to_translation(run, fails, binarised, tmp_path):
    """Profile, train, resume with the same options and another file, average and translate."""
    file, first, second = (tmp_path / name for name in ("admin.json", "first", "second"))
    profile = ["posenc", "profile-admin", binarised, *OPTIONS.split(), "--output"]
    printed = run(*profile, file)
    disregarded = "--bf16 --distributed-world-size 2 --ddp-backend fully_sharded"
    run(*profile, tmp_path / "half.json", *disregarded.split())
    assert (tmp_path / "half.json").read_text() == file.read_text()
    assert f"{file}: decoder: 6 sub-layers, ω from 1 to " in printed
    found = json.loads(file.read_text())
    omegas = [o for layers in found["omegas"].values() for layer in layers for o in layer.values()]
    assert len(omegas) == 10 and sorted(omegas)[:2] == [1.0, 1.0] and sorted(omegas)[2] > 1

    train = ["fairseq-train", binarised, *OPTIONS.split(), *TRAINING.split()]
    train += ["--admin-profile", file, "--save-dir"]
    printed = run(*train, first)
    losses = [float(part.split('"')[1]) for part in printed.split('"loss": ')[1:]]
    assert len(losses) >= 6 and all(map(math.isfinite, losses))
    # what was measured is the start: the deeper, the larger
    trained = weights(first / "checkpoint_1_3.pt")
    for side, layers in found["omegas"].items():
        for number, layer in enumerate(layers):
            for name, omega in layer.items():
                vector = trained[f"{side}.layers.{number}.{name}"]
                assert 0 < (vector - omega).abs().max() < 0.1

    other = json.loads(file.read_text())
    other["omegas"]["encoder"][0]["fc_ratio_change"] = 50.0
    file.write_text(json.dumps(other))
    run(*train, second, "--restore-file", first / "checkpoint_1_3.pt")
    unbroken, resumed = (weights(folder / "checkpoint_last.pt") for folder in (first, second))
    assert unbroken.keys() == resumed.keys()
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in unbroken.items())
    without = [word for word in train if word not in ("--admin-profile", file)]
    assert "has no --admin-profile; resume it with its own options" in fails(*without, second)

    file.unlink()
    averaging.save_average([first / "checkpoint_1_3.pt", first / "checkpoint_last.pt"], first / "a")
    command = f"fairseq-generate {binarised} --user-dir fairseq_posenc --path {first / 'a'} --cpu"
    command += " --task posenc_translation --required-batch-size-multiple 1 --max-len-b 20"
    printed = run(*command.split())
    assert sum(line.startswith("H-") for line in printed.splitlines()) == 120
    model = PosencTransformerModel.from_pretrained(
        str(first), "checkpoint_last.pt", str(binarised), cpu=True
    )
    assert torch.equal(
        model.models[0].encoder.layers[1].fc_ratio_change,
        unbroken["encoder.layers.1.fc_ratio_change"],
    )


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"arch": "transformer_tiny"}, "ADMIN needs an --arch posenc_transformer"),
        ({"admin_profile": "admin.json"}, "leave it out of the profiling pass"),
        ({"max_tokens": None}, "with --max-tokens or --batch-size"),
        ({"decoder_normalize_before": True}, "ADMIN does not go with pre-norm layers"),
    ],
)
def test_what_cannot_be_profiled_is_refused(shape, tmp_path, changed, words):
    options = {"arch": "posenc_transformer", "max_tokens": 100, "batch_size": None, **changed}
    with pytest.raises(UsageError, match=words):
        write_profile(shape(**options), str(tmp_path / "admin.json"))
    assert list(tmp_path.iterdir()) == []
