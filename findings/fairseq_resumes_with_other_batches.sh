#!/usr/bin/env bash
# Guess: a training that was stopped within an epoch and resumed goes on with the sentences that the
#        epoch has left, and without dropout it has the losses of an unbroken one.
# Seen:  within its first epoch it does. From the second on, batches are made anew, by the epoch that
#        the run begins with, and the losses are others. Nothing is said.
# Versions: fairseq-fixed 0.12.3.1 (fairseq's main branch after 0.12.2), torch 2.13.0, numpy 1.26.4.
#        Source: tasks/fairseq_task.py, make_batches, numpy_seed(seed + epoch).
# Why:   a training in jobs of limited hours is resumed so. It is no longer its seed's, and depends on
#        where the jobs ended.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install setuptools==80.10.2 wheel==0.48.0 cython==3.3.1 numpy==1.26.4 cffi==2.1.0 hydra-core==1.3.2 \
    omegaconf==2.3.0 regex==2026.11.15 sacrebleu==2.6.0 tqdm==4.70.1 bitarray==3.12.3 scikit-learn==1.9.1 packaging==26.3
cd "$work"
export PATH=$work/env/bin:$PATH PYTHONWARNINGS=ignore TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1
# from its archive: to install it takes minutes, and compiles more than these two
READTHEDOCS=1 pip -qq download --no-deps --no-build-isolation --no-binary fairseq-fixed "fairseq-fixed==0.12.3.1"
mkdir source && tar -xf fairseq*.tar.gz -C source --strip-components 1
export PYTHONPATH=$work/source CPATH=$(python -c 'import numpy; print(numpy.get_include())')
sed -i '1i # distutils: language = c++' source/fairseq/data/*_fast.pyx
cythonize -qi source/fairseq/data/{data_utils,token_block_utils}_fast.pyx >/dev/null 2>&1
for number in $(seq 64); do echo "w$((number % 7)) w$((number % 11)) w$((number * number % 13))"; done >train.txt
python -m fairseq_cli.preprocess --only-source --trainpref train.txt --destdir bin >/dev/null 2>&1
losses() {
    python -m fairseq_cli.train bin --task language_modeling --arch transformer_lm --decoder-layers 1 --decoder-embed-dim 16 \
        --decoder-ffn-embed-dim 16 --decoder-attention-heads 1 --sample-break-mode eos --tokens-per-sample 8 --batch-size 8 \
        --optimizer adam --lr 0.01 --dropout 0 --cpu --num-workers 0 --disable-validation --no-epoch-checkpoints \
        --log-format json --log-interval 1 "$@" 2>&1 | grep -o '"loss": "[^"]*"' | cut -d '"' -f 4 | tr '\n' ' '
}
whole=$(losses --max-update 14 --no-save)
for stop in 4 12; do  # an epoch has eight updates
    parts=$(losses --max-update $stop --save-dir $stop)$(losses --max-update 14 --save-dir $stop)
    printf 'stopped after %d updates: %s\nunbroken: %s\n' "$stop" "$parts" "$whole"
    [ "$(wc -w <<<"$parts")" = 14 ] && if [ $stop = 4 ]; then [ "$parts" = "$whole" ]; else [ "$parts" != "$whole" ]; fi
done
