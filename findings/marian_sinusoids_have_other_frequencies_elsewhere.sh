#!/usr/bin/env bash
# Guess: OPUS-MT and other models of Marian have Marian's own positions in transformers and in
#        CTranslate2, so they give Marian's scores.
# Seen:  Marian's sinusoids have the frequencies 10000^(-i/(d/2-1)), as fairseq's; both others make a
#        table of 10000^(-i/(d/2)), the paper's. At width 512 its entries are off by up to 0.07 at 50
#        positions, 0.14 at 100 and 0.71 at 512. CTranslate2's scores differ from Marian's, and are
#        equal once its converter has Marian's frequencies.
# Versions: pymarian 1.12.42, ctranslate2 4.8.5, transformers 5.24.0. Source: node_initializers.cpp of
#        marian-dev, ctranslate2/converters/marian.py, transformers' MarianSinusoidalPositionalEmbedding.
# Why:   a converted model does not compute what was trained, the less so the longer the text.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# the build for a CPU where the package index has it: the other one is several GB
"$work/env/bin/pip" -qq install --no-compile "torch==2.13.0+cpu" 2>/dev/null || "$work/env/bin/pip" -qq install "torch==2.13.0"
"$work/env/bin/pip" -qq install --no-compile pymarian==1.12.42 ctranslate2==4.8.5 transformers==5.24.0 numpy==2.4.6
cd "$work"
env/bin/python - 2>log <<'END'
import random
import numpy
from ctranslate2 import Translator
from ctranslate2.converters import MarianConverter, marian
from pymarian import Trainer, Translator as Marian
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

ENGLISH, GERMAN = "one two three four five six".split(), "eins zwei drei vier fünf sechs".split()
random.seed(1)
lines = [random.choices(range(6), k=random.randint(3, 12)) for _ in range(1000)]
for name, words in (("en", ENGLISH), ("de", GERMAN)):
    open(name, "w").writelines(" ".join(words[n] for n in line) + "\n" for line in lines)
Trainer(model="model.npz", train_sets=["en", "de"], vocabs=["v.yml", "v.yml"], type="transformer", dim_emb=64,
        transformer_dim_ffn=64, transformer_heads=2, enc_depth=1, dec_depth=1, tied_embeddings_all=True,
        cpu_threads=1, mini_batch=32, after_batches=100, learn_rate=0.005, workspace=128, seed=1).train()
source = " ".join(ENGLISH * 3)
marian_model = Marian(models="model.npz", vocabs=["v.yml", "v.yml"], cpu_threads=1, beam_size=1, n_best=True)
output, score = marian_model.translate([source])[0].split("\n")[0].split(" ||| ")[1::2]
weights = dict(numpy.load("model.npz"))
config = weights["special:model.yml"]  # pymarian writes more zeros behind it than CTranslate2 takes
weights["special:model.yml"] = config[: numpy.flatnonzero(config)[-1] + 2]
numpy.savez("model.npz", **weights)

def table(width, steps):
    angles = numpy.arange(2048)[:, None] * 10000.0 ** (-numpy.arange(width // 2) / steps)
    return numpy.concatenate([numpy.sin(angles), numpy.cos(angles)], 1)

def score_of(folder):
    MarianConverter("model.npz", ["v.yml", "v.yml"]).convert(folder)
    scored = Translator(folder).score_batch([source.split()], [output.split()])[0].log_probs
    # where an output is as long as Marian allows, it counts no end of the sentence
    return sum(scored[: 3 * len(source.split())])

own = score_of("own")
marian._make_sinusoidal_position_encodings = lambda width: table(width, width / 2 - 1)
print("Marian", score, "CTranslate2", own, "with Marian's frequencies", score_of("marian"))
of_transformers = MarianSinusoidalPositionalEmbedding(512, 64).create_weight().numpy()
assert abs(of_transformers - table(64, 32)[:512]).max() < 1e-5
assert abs(float(score) - score_of("again")) < 0.001 < 0.01 < abs(float(score) - own)
END
