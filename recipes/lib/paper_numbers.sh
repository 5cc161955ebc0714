# Numbers that papers tell of their data and models, and whether ours are the same: a checksum of the
# whole way from the archives, as far as the number has digits. Needs wmt_data.sh.

# corpus, form, what is counted, the paper's number, and how far from it ours may be, as a share of it
PAPER_NUMBERS='
wmt16_en_de    vanilla      pairs       4500000   0.02
wmt16_en_de    vanilla      parameters  61000000  0.01
wmt16_en_de    extrapolate  pairs       3900000   0.02
wmt16_en_de    interpolate  pairs       450000    0.02
wmt14_en_de    vanilla      α           1.0337    0.001
wmt14_en_fr    vanilla      α           1.1632    0.001
iwslt14_de_en  vanilla      pairs       160239    0
iwslt14_de_en  vanilla      validation  7283      0
iwslt14_de_en  vanilla      test        6750      0
'

# compare_with_paper SETTING: a line for each number that is not the paper's.
compare_with_paper() {
    local corpus form name number share ours about
    about="$(corpus_of "$1") $(form_of "$1")"
    languages_of "$1"
    while read -r corpus form name number share; do
        if [[ $about != "$corpus $form" ]]; then continue; fi
        ours=$(count_of "$1" "$name")
        if awk "BEGIN { d = $ours / $number - 1; exit !(d > $share || -d > $share) }"; then
            say "note: [$1] $name: $ours, the paper's $number: it is not the same text"
        fi
    done <<<"$PAPER_NUMBERS"
}

# count_of SETTING NAME: pairs of training, validation and test text, α (target by source subwords), or
# parameters of Transformer base with this vocabulary for both languages.
count_of() {
    local data
    data=$(data_of "$1")
    # in other locales a no-break space would part words
    case $2 in
        pairs) wc -l <"$data/train.bpe.$SOURCE" ;;
        validation) wc -l <"$data/valid.bpe.$SOURCE" ;;
        test) wc -l <"$data/tests.$SOURCE" ;;
        α) LC_ALL=C wc -w "$data/train.bpe".{"$SOURCE","$TARGET"} | awk '{ n[NR] = $1 } END { print n[2] / n[1] }' ;;
        # 44,140,544 without embeddings; fairseq adds <s>, <pad>, </s> and <unk>
        parameters) echo $((44140544 + 512 * (4 + $(wc -l <"$RUN_DIR/bin/$1/dict.$SOURCE.txt")))) ;;
    esac
}
