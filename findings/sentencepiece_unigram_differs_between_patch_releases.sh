#!/usr/bin/env bash
# Guess: the same text, options and seedless training give the same Unigram model in every patch
#        release: 0.2.2 and 0.2.3 learn the same pieces.
# Seen:  of 1,000 pieces learnt from the help texts that Python ships, some 150 are other ones.
# Versions: sentencepiece 0.2.2, 0.2.3. Source: the trainer changed between the two.
# Why:   a vocabulary made again for a model that exists is not its vocabulary, and "learn subwords with
#        the recipe" needs the version beside the options. Keep the .model file.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in sentencepiece==0.2.2 sentencepiece==0.2.3; do
  python3 -m venv "$work/$package"
  "$work/$package/bin/pip" -qq install "$package"
  "$work/$package/bin/python" - "$work" <<'END'
import sys
from pydoc_data import topics

import sentencepiece

folder, version = sys.argv[1], sentencepiece.__version__
with open(f"{folder}/text", "w") as stream:
    stream.write("\n".join(topics.topics[name] for name in sorted(topics.topics)))
sentencepiece.SentencePieceTrainer.train(
    input=f"{folder}/text", model_prefix=f"{folder}/model", vocab_size=1000,
    num_threads=1, minloglevel=2)
model = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/model.model")
with open(f"{folder}/pieces.{version}", "w") as stream:
    stream.write("\n".join(sorted(model.id_to_piece(i) for i in range(1000))) + "\n")
END
done
shared=$(comm -12 "$work/pieces.0.2.2" "$work/pieces.0.2.3" | wc -l)
echo "sentencepiece 0.2.2 and 0.2.3 share $shared of 1000 pieces"
[ "$shared" -lt 1000 ]
