#!/usr/bin/env bash
# Guess: a sentence longer than --max-seq-len of the training is refused, left out or named in the log; or, as sinusoids
#        go on for ever, it is translated as a whole at positions that training had not.
# Seen:  it is cut into pieces of that length, wherever that falls, which are translated apart and joined by a blank.
#        The line that says so is of the level "debug", so it is not printed. An output may be longer than the limit:
#        all of its further tokens have the sinusoid of the last one ("temporary fix" in the source).
# Versions: sockeye 3.1.34 (with torch 2.13.0; it was made for older ones). Source: inference.py, Translator.translate;
#        layers.py, PositionalEmbeddings.forward.
# Why:   the default limit is 95 subwords, which sentences of news pass. BLEU by length does not measure how a model does
#        beyond its trained length there, and looks good: in a comparison with other toolkits, of encodings or of
#        documents, Sockeye's are translations of short text. A word that stands at a cut has no context.
set -euo pipefail
export OMP_NUM_THREADS=1  # on a busy machine two wait for each other

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 pyyaml==6.0.4 sacrebleu==2.6.0
install --no-deps sockeye==3.1.34
cd "$work"
cat >text.py <<'END'
import random

random.seed(1)
for name, lines in (("train", 2000), ("valid", 50)):
    with open(name, "w") as file:
        for _ in range(lines):
            print(*random.choices([f"w{number}" for number in range(20)], k=random.randint(1, 8)), file=file)
END
env/bin/python text.py
# a model that copies up to eight words
env/bin/python -W ignore -m sockeye.train -s train -t train -vs valid -vt valid -o model --use-cpu --max-seq-len 8 \
    --num-layers 1 --transformer-model-size 32 --num-embed 32 --transformer-attention-heads 2 --seed 1 \
    --transformer-feed-forward-num-hidden 64 --batch-type sentence --batch-size 32 --initial-learning-rate 0.01 \
    --checkpoint-interval 100 --max-updates 100 --decode-and-evaluate 0 >train.log 2>&1
first="w8 w19 w8 w3 w0 w7 w1 w2" second="w5 w5 w15 w12 w3 w9 w4 w6"
printf '%s\n' "$first $second" "$first" "$second" |
    env/bin/python -W ignore -m sockeye.translate -m model --use-cpu >outputs 2>translate.log
cat outputs
{ read -r whole && read -r left && read -r right; } <outputs
[ "$whole" = "$left $right" ]
if grep -E "Splitting|exceeds" translate.log; then exit 1; fi
env/bin/python -W ignore - <<'END'
import sockeye
import torch
from sockeye.layers import PositionalEmbeddings
from sockeye.model import load_model

model = load_model("model", device=torch.device("cpu"))[0]
positions = [module for module in model.modules() if isinstance(module, PositionalEmbeddings)][-1]  # the decoder's
rows = positions(torch.zeros(1, 5, 32), steps=torch.tensor([[7, 8, 9, 10, 50]]))[0]
print("sockeye", sockeye.__version__, "positions 7, 8, 9, 10, 50:", rows[:, 0].tolist())
assert len(rows.unique(dim=0)) == 2
END
