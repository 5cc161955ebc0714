#!/usr/bin/env bash
# SHAPE (Kiyono et al. 2021), Tables 1, 2, 5, 6 and 7, Figures 2, 3, 4, 7 and 8: WMT16 English to German as
# it is, with long sentences kept from training (EXTRAPOLATE), and with ten sentences joined to one
# (INTERPOLATE).
#
# From the archives of WMT16 (europarl v7, common crawl, news commentary v11) to the paper's tables of
# BLEU on newstest2010-2016, with speed and training time, and of sentences moved to the end of a joined
# input. As in Table 2, VANILLA alone has five seeds and INTERPOLATE has no Shaw: 21 trainings.
# --seeds and --encodings are of all settings.

options=(
    "--preset gpu        a first try on one GPU, with bf16: EXTRAPOLATE, its three rows, one seed,"
    "                    9,000 updates, which are 1 billion tokens; not tried on a GPU here"
    "--sweep LIST        further K of SHAPE on EXTRAPOLATE, with the first seed (40, which Table 2's"
    "                    section 3.3 reports; 10,20,30,40,100 are the paper's tuning, 4 trainings more)"
    "--pairs N           joined pairs of the training text for Table 1 ({pairs})"
    "--interval N        updates between checkpoints, of which the last {keep} are averaged ({interval})"
    "--lenpen X          length penalty: sums of log-probabilities are divided by length^X ({lenpen}: none)"
    "--dictionary N      the most frequent subwords, the others are unknown ({dictionary})"
)
notes=(
    "Defaults are those of the paper's Table 4: Transformer base, Adam (0.9, 0.98), Noam's schedule with
factor 2 and 8,000 warm-up updates, dropout 0.1, label smoothing 0.1, 112,000 tokens per update,
200,000 updates, beam 4. As in the authors' code: normalisation before each sub-layer, dropout 0.1
also of attention and after ReLU, and no length penalty; for Shaw one table for keys and values, and
embeddings neither scaled nor dropped. The dictionary has the size of Ott et al. 2018, which makes the
61 million parameters of Table 6. Our readings: every setting has the vocabulary of its own training
text; the rest (< 10) of the joined training sentences is dropped, that of validation and test sets is
a shorter one; separators are scored as they stand."
)
defaults=(
    --run-dir runs/shape --settings vanilla,extrapolate,interpolate --corpus wmt16_en_de
    --tests all --pooled newstest2010,newstest2011,newstest2012,newstest2013 # Figure 4: validation sets
    --bins 10,20,30,40,50,60,70 # as in Figure 4; for Figures 3 and 7 the paper does not tell them
    --dictionary 32768 --pairs 10000
    --arch posenc_transformer_wmt_en_de --shape 6,512,8 --tokens 112000 --updates 200000 --warmup 8000
    --longest 1024 --interval 5000 --keep 10 --beam 4 --lenpen 0
    --seeds 1,2,3,4,5 --seeds-note "; elsewhere than on vanilla 1"
    --tables shape-1,shape-2,shape-5,shape-6,shape-7 --figures shape
)
vanilla=()
extrapolate=(
    --form extrapolate --seeds 1 --sweep 40 --sweep-seeds first
    --sweep-row "shape_K{}=shape --position-max-shift {}"
)
interpolate=(
    --form interpolate --seeds 1 --encodings sinusoidal,shape --longest 4096
    --bins 100,200,300,400,500 --score-of joined
)
rows=(
    sinusoidal
    "shaw=shaw --position-shared-tables --no-scale-embedding --no-embedding-dropout"
    shape
)
train=(
    --arch {arch} --share-all-embeddings
    --encoder-normalize-before --decoder-normalize-before
    --dropout 0.1 --attention-dropout 0.1 --activation-dropout 0.1
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --adam-eps 1e-8 --clip-norm 0
    --lr 0.000988212 # 2 · 512^-½ · 8000^-½, the peak of Noam's schedule with factor 2
    --lr-scheduler inverse_sqrt --warmup-updates {warmup-updates}
    --max-source-positions {longest} --max-target-positions {longest}
    --max-update {updates} --save-interval-updates {interval}
    --keep-interval-updates {keep} --no-epoch-checkpoints --skip-invalid-size-inputs-valid-test
)
generate=(--beam {beam} --lenpen {lenpen} --max-tokens 8000 --max-len-a 1.2 --max-len-b 20)
joined=(--without-token '<sep>')
smoke=(
    --raw-dir recipes/smoke/wmt --run-dir runs/shape-smoke --seeds 1 --pairs 2 --keep 2 --beam 1
    --arch posenc_transformer_tiny --updates 20 --interval 10 --batch 2000 --bpe 500
    --encodings sinusoidal,shape --sweep 40
)
presets=(gpu)
gpu=(
    --run-dir runs/shape-gpu --settings extrapolate --seeds 1 --sweep "" --updates 9000 --interval 450
    --tables shape-2,shape-5
)
gpu_train=(--bf16)

source "$(dirname "$(realpath "$0")")/../lib/recipe.sh"
recipe wmt "$@"
