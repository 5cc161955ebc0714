#!/usr/bin/env bash
# Guess: a training that was stopped within an epoch and resumed goes on with the sentences that the
#        epoch has left, and without dropout it has the losses of an unbroken one.
# Seen:  within its first epoch it does. From the second on, the batches are made anew, by the epoch
#        that the run begins with. Of the 64 sentences many are read twice, and as many never.
# Versions: fairseq-fixed 0.12.3.1 (fairseq's main branch after 0.12.2), torch 2.13.0.
#        Source: tasks/fairseq_task.py, make_batches, numpy_seed(seed + epoch).
# Why:   every training in jobs of limited hours is resumed so. It is no longer the seed's, and two
#        runs of one command cannot be compared. 0.12.2 has the seed without the epoch.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# the build for a CPU where the package index has it: the other one is several GB
"$work/env/bin/pip" -qq install "torch==2.13.0+cpu" 2>/dev/null || "$work/env/bin/pip" -qq install "torch==2.13.0"
"$work/env/bin/pip" -qq install setuptools==80.10.2 wheel==0.48.0 cython==3.3.1 numpy==2.4.6 cffi==2.1.0 hydra-core==1.3.2 \
    omegaconf==2.3.0 regex==2026.11.15 sacrebleu==2.6.0 tqdm==4.70.1 bitarray==3.12.3 scikit-learn==1.9.1 packaging==26.3
"$work/env/bin/pip" -qq install --no-build-isolation --no-deps "fairseq-fixed==0.12.3.1"
export PATH=$work/env/bin:$PATH PYTHONWARNINGS=ignore TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1
cd "$work"
for number in $(seq 64); do echo "w$((number % 7)) w$((number % 11)) w$((number * number % 13))"; done >train.txt
fairseq-preprocess --only-source --trainpref train.txt --destdir bin >/dev/null 2>&1
losses() {
    fairseq-train bin --task language_modeling --arch transformer_lm --decoder-layers 1 --decoder-embed-dim 16 \
        --decoder-ffn-embed-dim 16 --decoder-attention-heads 1 --sample-break-mode eos --tokens-per-sample 8 --batch-size 8 \
        --optimizer adam --lr 0.01 --dropout 0 --cpu --num-workers 0 --disable-validation --no-epoch-checkpoints \
        --log-format json --log-interval 1 "$@" 2>&1 | grep -o '"loss": "[^"]*"' | tr '\n' ' '
}
for stop in 4 12; do  # an epoch has eight updates
    whole=$(losses --max-update 14 --no-save)
    parts=$(losses --max-update $stop --save-dir $stop)$(losses --max-update 14 --save-dir $stop)
    printf 'stopped after %d updates: %s\nunbroken: %s\n' "$stop" "$parts" "$whole"
    [ $stop = 4 ] && [ "$parts" = "$whole" ] || { [ $stop = 12 ] && [ "$parts" != "$whole" ]; }
done
python - <<'END'
from collections import Counter
from itertools import islice

from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask


def iterator_of(epoch):  # as fairseq's Trainer asks for it, where a run begins with this epoch
    cfg = LanguageModelingConfig(data="bin", sample_break_mode="eos", tokens_per_sample=8, seed=1)
    task = LanguageModelingTask.setup_task(cfg)
    task.load_dataset("train")
    return task.get_batch_iterator(task.dataset("train"), max_sentences=8, seed=1, epoch=epoch)


def sentences(batches):
    return [number for batch in batches for number in batch["id"].tolist()]


stopped = iterator_of(1)
list(stopped.next_epoch_itr())
read = sentences(islice(stopped.next_epoch_itr(), 4))
resumed = iterator_of(2)
resumed.load_state_dict(stopped.state_dict())
counts = Counter(read + sentences(resumed.next_epoch_itr()))
twice, never = sum(n > 1 for n in counts.values()), 64 - len(counts)
print("of 64 sentences of the second epoch", twice, "were read twice and", never, "never")
assert twice > 5 and never > 5
END
