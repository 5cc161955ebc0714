#!/usr/bin/env bash
# Guess: a model with relative positions (Shaw et al. 2018, or T5's buckets) translates token by token with the scores
#        that its training computes.
# Seen:  only for its first token. The cache of keys grows by 32 places at a time, and distances are counted from its
#        last place, not from the newest token: most keys are "far away" until the places are nearly used up. States of
#        a random model are off by 0.4 of the largest with Shaw's, by 0.1 with buckets. A prompt has wrong distances,
#        too, with Shaw's: each of its tokens has those of the last place. Sinusoids and rotary positions are right.
# Versions: eole 0.6.4, torch 2.13.0. Source: modules/multi_headed_attn.py, _compute_attention (key.size(1) is the
#        length of the cache), with gen_relative_positions and compute_bias of modules/relative_position_bias.py.
# Why:   loss and perplexity are a good model's, and its translations are bad. It is laid to the relative positions.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 pydantic==2.14.4 pyyaml==6.0.4 tqdm==4.70.1
install --no-deps eole==0.6.4  # the decoder needs little of what eole depends on
"$work/env/bin/python" -W ignore - <<'END'
import eole
import torch
from eole.config.models import TransformerDecoderConfig
from eole.decoders.transformer import TransformerDecoder

torch.manual_seed(1)
texts, padding = torch.randn(2, 40, 16), torch.zeros(2, 1, 40, dtype=torch.bool)  # embedded, and without padding


def off(prompt, **positions):
    """The largest difference of states after a prompt, decoded in steps, to those of a training, by the largest."""
    config = TransformerDecoderConfig(layers=2, hidden_size=16, heads=4, transformer_ff=32, **positions)
    decoder = TransformerDecoder(config).eval()
    torch.manual_seed(1)
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    with torch.no_grad():
        trained = decoder(texts, tgt_pad_mask=padding)[0]
        decoder._init_cache(texts[:, :prompt], padding[..., :prompt])
        steps = [decoder(texts[:, :prompt], tgt_pad_mask=padding[..., :prompt])[0]]
        for position in range(prompt, 40):  # as in predict/generator.py
            decoder._extend_cache()
            steps.append(decoder(texts[:, position : position + 1], tgt_pad_mask=padding[..., :1])[0])
    difference = (torch.cat(steps, 1) - trained).abs().amax((0, 2)) / trained.abs().max()
    return difference[:prompt].max().item(), difference[prompt:].max().item()


relative = {"position_encoding_type": "Relative"}
for name, positions in {
    "sinusoids": {"position_encoding_type": "SinusoidalInterleaved"},
    "rotary": {"position_encoding_type": "Rotary", "rope_config": {}},
    "Shaw": {**relative, "n_positions": 4},
    "T5": {**relative, "n_positions": 20, "relative_positions_buckets": 8},
}.items():
    (first, later), (prompt, _) = off(1, **positions), off(6, **positions)
    print("eole", eole.__version__, name, "first token:", first, "later tokens:", later, "a prompt:", prompt)
    assert first < 1e-5 and (later > 0.05) == ("n_positions" in positions) and (prompt > 0.1) == (name == "Shaw")
END
