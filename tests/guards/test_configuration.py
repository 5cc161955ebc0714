"""Models from the configurations of ``fairseq-hydra-train`` are those of the command line."""

from argparse import Namespace

import pytest
import torch
from fairseq import models
from omegaconf import OmegaConf

from fairseq_posenc.encodings import TABLE, names
from fairseq_posenc.models import bert, transformer  # noqa: F401

SIZES = dict(encoder_embed_dim=16, max_source_positions=32, max_target_positions=32)
ARCHITECTURES = ["posenc_transformer_tiny", "posenc_bert_tiny"]


def configuration(arch, **options):
    """The model's part of a configuration, as the task gets it."""
    checkpoint = {"restore_file": "checkpoint_last.pt", "save_dir": "nowhere"}
    cfg = OmegaConf.create({"checkpoint": checkpoint, "model": {"_name": arch, **options}})
    return cfg.model


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("encoding", names())
def test_a_configuration_builds_the_model_of_the_command_line(tiny_task, arch, encoding):
    tiny_task.max_positions = lambda: 32
    options = dict(SIZES, position_encoding=encoding, max_positions=32)
    if encoding == "shape":
        options["position_max_shift"] = 7
    cfg, built = configuration(arch, **options), []
    for args in (cfg, Namespace(arch=arch, **options)):
        torch.manual_seed(1)
        built.append(models.build_model(args, tiny_task).state_dict())
    assert built[0].keys() == built[1].keys()
    assert all(torch.equal(weights, built[1][key]) for key, weights in built[0].items())
    assert cfg.position_signature.startswith(f"position:{encoding}|")
    assert encoding != "shape" or "|max-shift:7|" in cfg.position_signature
    assert cfg.arch == arch and "save_dir" not in cfg
    again = models.build_model(cfg, tiny_task)
    kinds = {type(module) for module in again.modules()}
    assert TABLE[encoding] in kinds
