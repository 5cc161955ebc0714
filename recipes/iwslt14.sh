#!/usr/bin/env bash
# IWSLT14, German to English, as in fairseq's example (transformer_iwslt_de_en), with every encoding.
#
# From the archive of IWSLT14 to a table of tokenised BLEU on lower-cased text, as fairseq-generate
# prints it, by length, with 95 % intervals. Batches are small: without --gpus a training has one GPU.
# --tables are of metrics.

notes=(
    "Data and training are those of fairseq's examples/translation: Moses' tokens, 1-175 of them on both
sides with a ratio of at most 1.5, lower-cased, every 23rd pair to validate, joint BPE of 10,000
operations, two dictionaries; Adam (0.9, 0.98), learning rate 0.0005, 4,000 warm-up updates, dropout
0.3, weight decay 0.0001, label smoothing 0.1, 4,096 tokens per update, the checkpoint of best BLEU on
the validation set, beam 5. The example does not say when to stop; its first version stopped after
50,000 updates, which is the default here."
)
defaults=(
    --run-dir runs/iwslt14 --settings de-en --corpus iwslt14_de_en --tests iwslt14 --dictionaries two
    --arch posenc_transformer_iwslt_de_en --shape 6,512,4 --tokens 4096 --updates 50000 --warmup 4000
    --multiple 8 --gpus 1 --keep 0 --seeds 1,2,3 # 8 is fairseq's default, which other recipes do not take
    --tables tokenised_bleu,sacrebleu_lowercase --tables-of iwslt14
)
rows=(
    sinusoidal none learned shape "cape=cape --position-source-scale auto" conditional shaw
    transformer_xl t5 tupe abs_scalar rel_scalar rotary alibi unifpe randomized kerple
)
train=(
    --arch {arch} --share-decoder-input-output-embed
    --optimizer adam --adam-betas '(0.9,0.98)' --clip-norm 0
    --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates {warmup-updates}
    --dropout 0.3 --weight-decay 0.0001
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --max-update {updates} --keep-last-epochs 1
    --eval-bleu --eval-bleu-args '{"beam": 5, "max_len_a": 1.2, "max_len_b": 10}'
    --eval-bleu-detok moses --eval-bleu-remove-bpe
    --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
)
generate=(--batch-size 128 --beam 5 --remove-bpe)
score=(--remove-bpe none --bins 10,20,30,50)
smoke=(
    --raw-dir recipes/smoke/iwslt14 --run-dir runs/iwslt14-smoke --seeds 1,2 --updates 20 --warmup 10
    --arch posenc_transformer_tiny --batch 2000 --bpe 500
    --encodings "sinusoidal,cape=cape --position-source-scale auto"
)

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe wmt "$@"
