#!/usr/bin/env bash
# Guess: BertConfig(position_embedding_type="relative_key") builds Shaw's relative keys, or is refused.
# Seen:  version 5 builds a BERT with absolute positions and no distance embeddings; the field stays in
#        config.json. Published checkpoints of this type load, with their weights listed as unexpected.
# Versions: transformers 5.23.0, torch 2.13.0 (4.x builds them). Source: models/bert/modeling_bert.py.
# Why:   a relative model computes something else after an upgrade, and nothing is raised.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 transformers==5.23.0
"$work/env/bin/python" - <<'END'
import transformers
from transformers import BertConfig, BertModel

config = BertConfig(vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                    intermediate_size=16, position_embedding_type="relative_key")
names = [name for name in BertModel(config).state_dict() if "position" in name or "dist" in name]
print("transformers", transformers.__version__, config.to_dict()["position_embedding_type"], names)
assert names == ["embeddings.position_embeddings.weight"]
END
