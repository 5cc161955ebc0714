# Rows of a table of results, `label=encoding option…` or `encoding option…`, and their trainings.

row_label() {
    if [[ $1 =~ ^([A-Za-z0-9_.-]+)= ]]; then
        echo "${BASH_REMATCH[1]}"
    else
        echo "$1" | sed 's/ *--position-/_/g; s/[^A-Za-z0-9_.-]\{1,\}/-/g'
    fi
}

row_options() { [[ $1 =~ ^[A-Za-z0-9_.-]+= ]] && echo "${1#*=}" || echo "$1"; }

# progress LABEL [METRIC]: pick what a person wants to watch from fairseq's log.
progress() {
    local metric=${2:-nll_loss}
    sed -n -u -E \
        -e "s/.*\| (position:.*)/[$1] \1/p" \
        -e "s/.*train_inner \| epoch ([0-9]+): .* loss=([0-9.]+), .* wps=([0-9.]+), .*num_updates=([0-9]+),.*/[$1] epoch \1, update \4: loss \2, \3 tokens\/s/p" \
        -e "s/.*valid on .* $metric ([0-9.-]+) .*num_updates ([0-9]+).*/[$1] update \2: validation $metric \1/p" \
        -e "s/.*(fairseq_posenc: error:.*|[A-Za-z]*Error: .*)/[$1] \1/p"
}

# Sets DEVICE, JOBS and DEVICE_OPTIONS where the user has not chosen.
choose_device() {
    if [[ -z $DEVICE ]]; then
        DEVICE=$(python -c 'import torch; print("cuda" if torch.cuda.is_available() else "cpu")')
    fi
    case $DEVICE in
        cpu) DEVICE_OPTIONS=(--cpu) JOBS=${JOBS:-$(cores)} ;;
        cuda) DEVICE_OPTIONS=() JOBS=${JOBS:-1} ;;
        *) die "--device is cpu or cuda, not $DEVICE" ;;
    esac
    if [[ $DEVICE == cuda ]]; then tell_precision; fi
}

# tell_precision: what float32 costs on a GPU, once, also where one recipe calls another.
tell_precision() {
    case " ${EXTRA[*]} " in *" --fp16 "* | *" --bf16 "* | *" --amp "* | *" --memory-efficient-"*) return ;; esac
    [[ -z ${POSENC_PRECISION_TOLD:-} ]] || return 0
    export POSENC_PRECISION_TOLD=yes
    say "note: in float32, without '-- --bf16' or '-- --fp16', this takes an H100 about 5 to 10 times the" \
        "hours, computed from its data sheet: docs/gpu.md"
}
