# The models of Chen et al. 2021, by the tables that have them: rows.sh's ROWS, and --rows. A recipe
# sets TABLES, of which --rows takes the numbers.

declare -A MODELS=(
    [learned]="learned --position-segments input"
    [shaw]="shaw --position-segments input"
    [tupe]="tupe --position-segments input"
    [rel_scalar]="rel_scalar --position-segments per_head"
    [rel_heads]="rel_scalar --position-segments per_head --position-sharing heads"
    [rel_layers]="rel_scalar --position-segments per_head --position-sharing layers"
    [rel_input]="rel_scalar --position-segments input"
    [rel_input_heads]="rel_scalar --position-segments input --position-sharing heads"
    [rel_input_layers]="rel_scalar --position-segments input --position-sharing layers"
    [abs_input]="abs_scalar --position-segments input"
    [abs_scalar]="abs_scalar --position-segments per_head"
    [abs_128]="abs_scalar --position-segments per_head --position-rank 128"
)
declare -A MODELS_OF=(
    [4]="learned shaw tupe rel_scalar"
    [8]="rel_heads rel_layers rel_scalar"
    [9]="rel_input_heads rel_input_layers rel_input rel_heads rel_layers rel_scalar"
    [10]="learned abs_input abs_scalar rel_input rel_scalar"
    [12]="learned abs_scalar abs_128 rel_scalar"
)
MODELS_OF[5]=${MODELS_OF[4]} MODELS_OF[11]=${MODELS_OF[10]}

# take_rows LIST: sets ROWS to the models of these tables, each once; `all` are those of TABLES.
take_rows() {
    local number label known=${TABLES//chen2021-/}
    [[ $1 != all ]] || set -- "$known"
    ROWS=()
    for number in ${1//,/ }; do
        [[ " $known " == *" $number "* ]] || die "--rows are of the tables ${known// /, }, or all, not $number"
        for label in ${MODELS_OF[$number]}; do
            if [[ " ${ROWS[*]} " != *" $label="* ]]; then ROWS+=("$label=${MODELS[$label]}"); fi
        done
    done
}

# whole_tables: leaves in TABLES those whose models are all among the rows, if there is any.
whole_tables() {
    local name label whole=''
    for name in $TABLES; do
        for label in ${MODELS_OF[${name#*-}]}; do
            [[ " ${ROWS[*]}" == *" $label="* ]] || continue 2
        done
        whole+=" $name"
    done
    TABLES=${whole:-$TABLES}
}

bert_rows_usage() {
    cat <<HELP
  --rows LIST         in place of --encodings: all, or those of some of the paper's tables
                      ($(sed 's/chen2021-//g; s/ /,/g' <<<"$TABLES"))
HELP
}

TABLES=chen2021-4 take_rows 4
