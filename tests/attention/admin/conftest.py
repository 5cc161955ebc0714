"""What the tests of ADMIN share: a batch, and models with a profile."""

import json
from argparse import Namespace

import pytest
import torch

from fairseq_posenc.attention import admin


@pytest.fixture
def batch():
    """Two sentence pairs with padding on either side."""
    return {
        "src_tokens": torch.tensor([[1, 1, 5, 6, 7, 2], [8, 9, 10, 11, 12, 2]]),
        "src_lengths": torch.tensor([4, 6]),
        "prev_output_tokens": torch.tensor([[2, 20, 21, 22, 23], [2, 24, 25, 1, 1]]),
    }


@pytest.fixture
def shape():
    """A function that returns the options of a model of two layers and width 64, and others."""

    def shape(**others):
        widths = {"encoder_embed_dim": 64, "decoder_embed_dim": 64}
        return Namespace(**{"encoder_layers": 2, "decoder_layers": 2, **widths, **others})

    return shape


@pytest.fixture
def profile(shape):
    """A function that returns a profile with a different number for each ω."""

    def profile(**options):
        found = json.loads(admin.unit_profile(shape(**options)))
        omega = 1.0
        for layers in found["omegas"].values():
            for layer in layers:
                for name in layer:
                    omega += 0.25
                    layer[name] = omega
        return found

    return profile


@pytest.fixture
def build_admin(build_model, profile):
    """A function that builds a tiny model with ADMIN; the ω are those of `profile`."""

    def build(encoding="sinusoidal", seed=1, **options):
        shape = {k: v for k, v in options.items() if k.endswith(("_layers", "_cross_attention"))}
        text = json.dumps(profile(**shape))
        return build_model(encoding, seed, **{"admin_profile": text, **options})

    return build
