# The data of the WMT recipes; see wmt.sh. Text of a corpus is in RUN_DIR/text/<corpus>:
# {train,valid,<test>}.{raw,tok,bpe}.<language>; what a setting makes of it in RUN_DIR/data/<setting>;
# binary data in RUN_DIR/bin/<setting>.

text_of() { echo "$RUN_DIR/text/$(corpus_of "$1")"; }

# Where a setting's {train,valid,<test>}.{bpe,raw}.<language> are.
data_of() { [[ $(form_of "$1") == vanilla ]] && text_of "$1" || echo "$RUN_DIR/data/$1"; }

# Sets SOURCE and TARGET.
languages_of() { IFS=_ read -r _ SOURCE TARGET <<<"$(corpus_of "$1")"; }

# The test sets of a setting's corpus. A plan goes before the text.
all_tests_of() {
    local file
    file=$(text_of "$1")/tests
    if [[ -e $file ]]; then cat "$file"; else corpus_has "$(corpus_of "$1")" "' '.join(corpus.tests)"; fi
}

# corpus_has CORPUS EXPRESSION: the value of an expression of Python about `corpus`; needs no environment.
corpus_has() {
    python3 -c "from fairseq_posenc.tools.translation.corpora import named
corpus = named('$1'); print($2)"
}

# reference_of SETTING TEST: raw text, or nothing where a set was held out from training text. A plan
# goes before the text: test sets will have theirs.
reference_of() {
    local file
    file=$(data_of "$1")/$2.raw.$TARGET
    if [[ -e $file || ($PLAN == yes && $2 != valid) ]]; then echo "$file"; fi
}

# each_corpus FUNCTION: on each corpus of the settings, once.
each_corpus() {
    local corpus setting
    for corpus in $(for setting in $SETTINGS; do corpus_of "$setting"; done | sort -u); do
        "$1" "$corpus"
    done
}

each_setting() {
    local setting
    for setting in $SETTINGS; do "$1" "$setting"; done
}

# Sets DATA: what the text in RUN_DIR was made from, beside the archives, and how.
data_settings() {
    local option files
    DATA=(--bpe "${BPE:-default}" ${DICTIONARY:+--dictionary "$DICTIONARY"})
    if [[ -n $READY ]]; then
        files=$(fingerprint "$READY")
        DATA+=(--ready "$files")
    fi
    if [[ -n $MOSES ]]; then
        command -v perl >/dev/null || die "--moses needs perl, which is not installed"
        files=$(fingerprint "$MOSES"/scripts/tokenizer/*.perl "$MOSES"/scripts/share/nonbreaking_prefixes)
        DATA+=(--moses "$files")
    fi
    for option in "${ADD[@]}"; do
        if [[ $option == --add ]]; then continue; fi
        files=$(fingerprint "$option".*)
        DATA+=(--add "$files")
    done
}

# What is to be downloaded; of text that is ready, the test sets alone.
files_of_corpus() { posenc prepare pairs files "$1" ${READY:+--tests-only}; }

# Of all corpora.
download_archives() {
    local bytes
    bytes=$(bytes_of_archives)
    check_disk "$bytes"
    each_corpus download
}

# Of those that are there, and of the others as far as it is recorded.
bytes_of_archives() {
    local url checksum name size total=0
    while IFS=$'\t' read -r url checksum name size; do
        if [[ -e $RAW/$name ]]; then size=$(stat -L -c %s "$RAW/$name"); fi
        total=$((total + ${size/#-/0}))
    done < <(each_corpus files_of_corpus | sort -u)
    echo "$total"
}

operations_of_corpus() { corpus_has "$1" corpus.operations; }

# On a corpus.
download() {
    local url checksum name size there option files mirror urls archives=()
    while IFS=$'\t' read -r url checksum name size; do
        archives+=("$RAW/$name")
        if [[ -e $RAW/$name ]]; then
            there=$(stat -L -c %s "$RAW/$name")
            [[ $size == - || $SMOKE == yes || $there == "$size" ]] ||
                say "note: $RAW/$name has $there bytes, not the $size of $url"
            continue
        fi
        [[ -z $RAW_DIR ]] || die "$RAW/$name is missing: it is $url"
        option=()
        if [[ $checksum != - && $SMOKE == no ]]; then option=(--checksum "$checksum"); fi
        urls=("$url")
        if [[ -n $URL ]]; then
            urls=()
            for mirror in ${URL//,/ }; do urls+=("$mirror/${url#*://*/}"); done
        fi
        say "download ${urls[*]}"
        posenc prepare download --output "$RAW/$name" "${option[@]}" "${urls[@]}" ||
            die "cannot get $name; fetch it by hand and give --raw-dir"
    done < <(files_of_corpus "$1")
    files=$(fingerprint "${archives[@]}")
    same_settings "$RUN_DIR/text/$1/settings" --archives "$files"
}

prepare_text() {
    if [[ -e $RUN_DIR/text/$1/text.done ]]; then return; fi
    text_commands "$1"
    "${PREPARE[@]}"
    touch "$RUN_DIR/text/$1/text.done"
}

# text_commands CORPUS: sets PREPARE, which makes its tokenised text, and LEARN, which learns its BPE.
text_commands() {
    local text=$RUN_DIR/text/$1 source target operations
    PREPARE=(posenc prepare pairs text "$1" --raw "$RAW" --output "$text" --workers "$WORKERS"
        ${MOSES:+--moses "$MOSES"} "${ADD[@]}")
    if [[ -n $READY ]]; then
        PREPARE=(posenc prepare pairs ready "$1" --input "$READY" --raw "$RAW" --output "$text" --workers "$WORKERS")
    fi
    IFS=_ read -r _ source target <<<"$1"
    operations=${BPE:-$(operations_of_corpus "$1")}
    LEARN=(posenc prepare pairs bpe-learn --input "$text"/train.tok.{"$source","$target"}
        --operations "$operations" --output "$text/codes" --workers "$WORKERS")
}

# On a corpus: what is downloaded and done.
plan_text() {
    say "[$1] download into $RAW:"
    files_of_corpus "$1"
    text_commands "$1"
    say "[$1] text and subwords"
    print_command "${PREPARE[@]}"
    if [[ -z $READY ]]; then print_command "${LEARN[@]}"; fi
}

# On a corpus: joint BPE of the training text, applied to all. Training text, and a validation set held
# out from it, are cleaned in subwords; before that they are train.cut and valid.cut: of two languages,
# one alone cannot be cleaned a second time.
learn_subwords() {
    local text=$RUN_DIR/text/$1 file output source target split kind counts cleaned=(train)
    if [[ -e $text/subwords.done ]]; then return; fi
    IFS=_ read -r _ source target <<<"$1"
    if [[ -n $READY && -e $text/train.bpe.$source && ! -e $text/train.tok.$source ]]; then
        say "the text is cut into subwords already"
        touch "$text/subwords.done"
        return
    fi
    if [[ ! -e $text/valid.raw.$target ]]; then cleaned+=(valid); fi
    if [[ ! -e $text/codes ]]; then
        text_commands "$1"
        say "learn the BPE operations"
        "${LEARN[@]}"
    fi
    for file in "$text"/*.tok.{"$source","$target"}; do
        split=$(basename "${file%.tok.*}") kind=bpe
        if [[ " ${cleaned[*]} " == *" $split "* ]]; then kind=cut; fi
        output=$text/$split.$kind.${file##*.}
        if [[ -e $output ]]; then continue; fi
        say "apply BPE to ${file##*/}"
        posenc prepare pairs bpe-apply --codes "$text/codes" --input "$file" \
            --output "$output" --workers "$WORKERS"
    done
    for split in "${cleaned[@]}"; do
        counts=$(posenc prepare pairs clean "$1" --input "$text/$split.cut" --output "$text/$split.bpe")
        say "$split: $counts"
    done
    touch "$text/subwords.done"
    for split in "${cleaned[@]}"; do rm "$text/$split".cut.*; done
}

# On a setting: what it makes of the text.
reform() {
    local form split text data rest kind counts
    form=$(form_of "$1") text=$(text_of "$1") data=$(data_of "$1")
    if [[ $form == vanilla || -e $data/form.done ]]; then return; fi
    for split in train valid $(all_tests_of "$1"); do
        if [[ $form == extrapolate && $split != train ]]; then
            (cd "$data" && ln -sf ../../text/"$(corpus_of "$1")/$split".{bpe,raw}.* .)
            continue
        fi
        rest=() && [[ $split == train ]] || rest=(--keep-rest)
        for kind in bpe raw; do
            if [[ ! -e $text/$split.$kind.$TARGET ]]; then continue; fi
            counts=$(posenc prepare pairs setting "$form" --input "$text/$split.$kind" \
                --output "$data/$split.$kind" --languages "$SOURCE,$TARGET" "${rest[@]}")
        done
        say "[$1] $split: $counts"
    done
    touch "$data/form.done"
}

# binarise_commands SETTING: sets BINARISE, and REFORM, which makes the setting's training text.
binarise_commands() {
    local data form tests
    languages_of "$1"
    data=$(data_of "$1") form=$(form_of "$1") tests=$data/tests
    if declare -F pooled_of >/dev/null; then tests+=,$data/pooled; fi
    REFORM=()
    if [[ $form != vanilla ]]; then
        REFORM=(posenc prepare pairs setting "$form" --input "$(text_of "$1")/train.bpe"
            --output "$data/train.bpe" --languages "$SOURCE,$TARGET")
    fi
    BINARISE=(posenc prepare binarise --source-lang "$SOURCE" --target-lang "$TARGET"
        "${JOINED[@]}" --trainpref "$data/train.bpe" --validpref "$data/valid.bpe"
        --testpref "$tests" --destdir "$RUN_DIR/bin/$1" --workers "$WORKERS"
        ${DICTIONARY:+--nwordssrc "$DICTIONARY" --nwordstgt "$DICTIONARY"})
}

# pool NAME KIND TEST…: NAME.<language> in `data` is these test sets, one behind the other.
pool() {
    local language tests=("${@:3}")
    for language in $SOURCE $TARGET; do
        (cd "$data" && cat "${tests[@]/%/.$2.$language}" >"$1.$language")
    done
}

# On a setting; all test sets become one, and so do those that pooled_of names.
binarise() {
    local data bin=$RUN_DIR/bin/$1
    if [[ -e $bin/binarise.done ]]; then return; fi
    languages_of "$1"
    data=$(data_of "$1")
    mkdir -p "$data"
    reform "$1"
    pool tests bpe $(all_tests_of "$1")
    if declare -F pooled_of >/dev/null; then
        pool pooled bpe $(pooled_of "$1")
        pool tests.raw raw $(all_tests_of "$1")
    fi
    rm -rf "$bin" && mkdir -p "$bin"
    say "[$1] binarise"
    binarise_commands "$1"
    "${BINARISE[@]}" >"$bin/preprocess.out" 2>&1 ||
        die "binarising failed, see $bin/preprocess.out: $(tail -n 1 "$bin/preprocess.out")"
    posenc prepare pairs bpe-keep "$(corpus_of "$1")" --output "$bin" \
        --codes "$(text_of "$1")/codes"
    if [[ $SMOKE == no ]]; then compare_with_paper "$1"; fi
    touch "$bin/binarise.done"
}
