# The options of a recipe. A recipe defines `usage`, and lists in OPTIONS the names of its options:
# --max-tokens N sets MAX_TOKENS, or the variable that is named behind a colon (keep-checkpoints:KEEP);
# with a comma behind it the option is a list, whose commas become spaces. FLAGS have no value and set
# their variable to yes. A recipe may define `own_option NAME VALUE`, which takes options that do more
# and fails for others, and, if --smoke is among its FLAGS, `set_smoke`.

OPTIONS=''
COMMON='run-dir seeds, device jobs stage:FIRST_STAGE stop-stage:LAST_STAGE'

own_option() { false; }

# parse_arguments ARGUMENT…: sets the variables, EXTRA to all that follows `--`, and GIVEN to what stands
# before it, without --plan and --slurm. What set_smoke sets, and set_gpu for --preset gpu, is overruled
# by other options, wherever these stand.
parse_arguments() {
    local argument last=''
    GIVEN=()
    for argument in "$@"; do
        if [[ $last == --preset ]] && declare -F set_gpu >/dev/null; then
            [[ $argument == gpu ]] || die "--preset is gpu, not $argument"
            set_gpu
        fi
        last=$argument
        case $argument in
            --) break ;;
            --rows) [[ " $* " != *" --encodings "* ]] || die "--rows and --encodings exclude each other" ;;
            --help | -h) usage || true; exit 0 ;;
            --smoke) [[ $FLAGS != *--smoke* ]] || { SMOKE=yes && set_smoke; } ;;
        esac
    done
    while (($#)); do
        if [[ $1 == -- ]]; then shift && EXTRA=("$@") && break; fi
        if [[ " $FLAGS " == *" $1 "* ]]; then
            argument=${1#--}
            [[ $argument == plan || $argument == slurm ]] || GIVEN+=("$1")
            argument=${argument//-/_}
            printf -v "${argument^^}" yes
            shift && continue
        fi
        (($# > 1)) || die "$1 needs a value, or is not an option; see --help"
        if [[ $1 == --encodings ]]; then
            IFS=, read -r -a ROWS <<<"$2" && SWEEP=() OWN_ROWS=yes
        else
            own_option "$1" "$2" || take_option "$1" "$2" || die "unknown option $1; see --help"
        fi
        GIVEN+=("$1" "$2")
        shift 2
    done
    check_common
}

# take_option NAME VALUE: set the variable of an option of OPTIONS or COMMON; fails for others.
take_option() {
    local option variable
    for option in $OPTIONS $COMMON; do
        if [[ --${option%%[:,]*} != "$1" ]]; then continue; fi
        variable=${option#*:}
        variable=${variable%,} variable=${variable//-/_}
        if [[ $option == *, ]]; then set -- "$1" "${2//,/ }"; fi
        printf -v "${variable^^}" %s "$2"
        return
    done
    return 1
}

# What every recipe has.
check_common() {
    local seed row labels=()
    whole_numbers JOBS FIRST_STAGE:stage LAST_STAGE:stop-stage
    for seed in $SEEDS; do
        [[ $seed =~ ^(0|[1-9][0-9]*)$ ]] || die "$seed is not a whole number (--seeds; see --help)"
    done
    for row in "${ROWS[@]}" "${SWEEP[@]}"; do
        check_label "$(row_label "$row")" "$row"
        labels+=("$(row_label "$row")")
    done
    no_repeats --encodings "${labels[@]}"
    no_repeats --seeds $SEEDS
}

# check_label LABEL ROW: a row's folder lies in the run folder, and nothing else there has its name.
check_label() {
    [[ $1 =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]*$ ]] ||
        die "the row '$2' needs a label of letters, digits and _.- that begins with none of .-:" \
            "label=encoding (--encodings)"
    case $1 in
        bin | benchmarks | corpus | data | lock | pretrain | raw | report | row | settings | subwords | text | \
            train.* | valid.* | test.* | *.codes | *.csv | *.done | *.md | *.out | *.part | *.png)
            die "the run folder has something else called $1: give the row another label (--encodings)"
            ;;
    esac
}

# no_repeats OPTION WORD…: each word has a folder of its own.
no_repeats() {
    local repeated
    repeated=$(printf '%s\n' "${@:2}" | sort | uniq -d | paste -s -d ,)
    [[ -z $repeated ]] || die "$1 has $repeated more than once: they would share a folder"
}

# whole_numbers VARIABLE[:OPTION]…: these are whole numbers above 0, or empty. OPTION is the name
# without dashes, where it is not that of the variable.
whole_numbers() {
    local argument name option
    for argument in "$@"; do
        name=${argument%:*} option=${argument#*:}
        option=${option,,}
        [[ -z ${!name} || ${!name} =~ ^[1-9][0-9]*$ ]] ||
            die "${!name} is not a whole number above 0 (--${option//_/-}; see --help)"
    done
}
