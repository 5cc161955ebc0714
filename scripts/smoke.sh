#!/usr/bin/env bash
# usage: bash scripts/smoke.sh [FOLDER]
#
# Every recipe from its data to its table, with tiny models on generated data, and every command of
# the documentation: what scripts/test.sh has no time for. Offline but for the package index; about
# 25 minutes on 2 cores. Results and logs go to FOLDER (runs/smoke); runs that finished there
# before are not repeated. Exits with 1 if one fails, and names it.
set -euo pipefail
CDPATH= cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
  -*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" && exit ;;
esac
folder=${1:-runs/smoke}
failed=0
mkdir -p "$folder"
bin=$(bash scripts/setup.sh --extra test --print-bin)
export PATH="$bin:$PATH" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# smoke NAME COMMAND…: run it with its output in a log, and say how it ended.
smoke() {
  local name=$1 log=$folder/$1.log start=$SECONDS
  shift
  [ ! -e "$folder/$name.done" ] || return 0
  printf 'smoke: %s … ' "$name"
  if "$@" >"$log" 2>&1; then
    echo "finished in $((SECONDS - start)) s"
    touch "$folder/$name.done"
  else
    echo "failed after $((SECONDS - start)) s: $log ends with"
    tail -n 20 "$log"
    failed=1
  fi
}

# Files named as Multi30k's, of the embedded grammar.
make_multi30k() {
  local side
  python -m recipes.corpus --output "$1" --train 400 --valid 100 --test 20 --quiet
  for side in en de; do
    gzip -c "$1/train.$side" >"$1/train.$side.gz"
    gzip -c "$1/valid.$side" >"$1/val.$side.gz"
    gzip -c "$1/test.$side" >"$1/test_2016_flickr.$side.gz"
  done
}

multi30k() {
  make_multi30k "$folder/multi30k_raw"
  local setting
  for setting in vanilla extrapolate interpolate; do
    bash recipes/multi30k.sh --raw-dir "$folder/multi30k_raw" --run-dir "$folder/multi30k_$setting" \
      --setting "$setting" --longest 20 --epochs 5 --dim 32 --layers 1 --encodings sinusoidal,shaw
  done
}

# Raw text of one's own to a report, twice: the second time nothing is left to do.
own() {
  local raw=$folder/own_text
  python -m recipes.corpus --output "$raw" --train 400 --valid 50 --test 10 --quiet
  for _ in first second; do
    bash recipes/own.sh --source-lang en --target-lang de --train "$raw/train" --valid "$raw/valid" \
      --test "$raw/test" --encodings sinusoidal,shaw --seeds 1,2 --epochs 1 --bpe 300 --longest 25 \
      --run-dir "$folder/own"
  done
  test -s "$folder/own/report/report.html"
}

# A model that was trained for minutes translates, within the lengths it was trained on: five seeds
# had 99.1 ± 0.5 BLEU (docs/claims_appendix.md); with 800 updates two had 92.
floor() {
  local bleu
  bash recipes/quickstart.sh --run-dir "$folder/floor" --test 200 --test-lengths 4-12,13-20 \
    --seeds 1 --encodings sinusoidal
  bleu=$(python -c 'import json, sys; print(json.load(sys.stdin)["all"]["sacrebleu"])' \
    <"$folder/floor/sinusoidal/seed1/score.json")
  echo "$bleu BLEU"
  python -c 'import sys; sys.exit(float(sys.argv[1]) < 90)' "$bleu"
}

# Text as python_docs.sh takes it, of the embedded grammar.
python_docs() {
  local split
  python -m recipes.corpus --output "$folder/python_docs_text" --train 400 --valid 50 --test 60 --quiet
  for split in train valid test; do
    cp "$folder/python_docs_text/$split.de" "$folder/python_docs_text/$split.es"
  done
  bash recipes/python_docs.sh --data-dir "$folder/python_docs_text" --run-dir "$folder/python_docs" \
    --longest 24 --pieces 200 --test 2 --updates 10 --seeds 1,2 --encodings sinusoidal,rotary
}

# Text as lm.sh takes it, of the embedded grammar.
lm() {
  local split
  python -m recipes.corpus --output "$folder/lm_text" --train 400 --valid 50 --test 10 --quiet
  for split in train valid test; do cp "$folder/lm_text/$split.en" "$folder/lm_text/$split.txt"; done
  bash recipes/lm.sh --data-dir "$folder/lm_text" --run-dir "$folder/lm" --bpe 200 --updates 10 \
    --arch posenc_transformer_lm_tiny --length 32 --lengths 32,64 --seeds 1,2 --encodings sinusoidal,alibi
}

smoke floor floor
smoke quickstart bash recipes/quickstart.sh --run-dir "$folder/quickstart" --train 500 --test 20 \
  --updates 20 --encodings sinusoidal,shape,rel_scalar
smoke claims bash recipes/claims.sh --fast --run-dir "$folder/claims" --updates 20 --test 20 --seeds 1,2 \
  --parts length,joined,deep,plain
smoke multi30k multi30k
smoke own own
smoke longer_inputs bash recipes/longer_inputs.sh --smoke --run-dir "$folder/longer_inputs"
smoke python_docs python_docs
smoke lm lm
smoke anchors bash recipes/anchors.sh wmt14 --smoke --run-dir "$folder/anchors"
smoke anchors_bert bash recipes/anchors.sh bert --smoke --run-dir "$folder/anchors"
smoke iwslt14 bash recipes/iwslt14.sh --smoke --run-dir "$folder/iwslt14"
smoke shape bash recipes/shape/run.sh --smoke --run-dir "$folder/shape"
smoke cape bash recipes/cape/run.sh --smoke --run-dir "$folder/cape"
smoke rel_scalar bash recipes/rel_scalar/translate.sh --smoke --run-dir "$folder/rel_scalar"
# they call recipes/rel_scalar/pretrain_english.sh and recipes/rel_scalar/pretrain_multilingual.sh
smoke glue bash recipes/glue/run.sh --smoke --run-dir "$folder/glue"
smoke xtreme bash recipes/xtreme/run.sh --smoke --run-dir "$folder/xtreme"
smoke site bash scripts/docs.sh "$folder/docs"
smoke documentation python -m pytest -n "$(env -u OMP_NUM_THREADS nproc)" -m slow
exit "$failed"
