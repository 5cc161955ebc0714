# Stages, as speech and translation recipes have them: numbered, timed, skipped when complete.
# A recipe sources this file, calls `stage NUMBER TITLE MARK COMMAND…` for each, and may set
# FIRST_STAGE and LAST_STAGE from its options.

FIRST_STAGE=${FIRST_STAGE:-1}
LAST_STAGE=${LAST_STAGE:-99}

say() { printf '%s | %s\n' "$(date +%H:%M:%S)" "$*"; }

die() {
    printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# How many cores there are; nproc alone would take OMP_NUM_THREADS for it.
cores() { env -u OMP_NUM_THREADS nproc; }

# stage NUMBER TITLE MARK COMMAND…: run COMMAND, then touch MARK; with MARK there, run nothing.
# MARK `-` always runs the command, which then looks after its own parts.
stage() {
    local number=$1 title=$2 mark=$3 started=$SECONDS
    shift 3
    if ((number < FIRST_STAGE || number > LAST_STAGE)); then return; fi
    if [[ -e $mark ]]; then
        say "stage $number: $title: done before"
        return
    fi
    say "stage $number: $title"
    "$@"
    if [[ $mark != - ]]; then touch "$mark"; fi
    say "stage $number: $title: finished in $((SECONDS - started)) s"
}

# The environment; where its stage is left out, it is to be there.
set_up() {
    stage 1 "set-up" - source scripts/env.sh
    command -v fairseq-train >/dev/null ||
        die "there is no fairseq-train: start at stage 1, or first 'source scripts/env.sh'"
}

# same_settings FILE TEXT: refuse to go on with results that other settings have made.
same_settings() {
    local file=$1 text=$2
    mkdir -p "$(dirname "$file")" 2>/dev/null || die "cannot make the folder $(dirname "$file")"
    if [[ -e $file ]] && made_in "$(dirname "$file")"; then
        if [[ $(cat "$file") != "$text" ]]; then
            diff "$file" <(printf '%s\n' "$text") >&2 || true
            die "$(dirname "$file") was made with other settings (above, < then, > now);" \
                "give another --run-dir, or delete that folder"
        fi
    else
        { writing "$file" printf '%s\n' "$text"; } 2>/dev/null || die "cannot write $file"
    fi
}

# made_in DIR: whether there are results, which settings and logs are not.
made_in() {
    [[ -n $(find "$1" ! -type d ! -name settings ! -name row ! -name lock ! -name '*.log' -print -quit) ]]
}

# open_run_dir DIR SETTINGS: DIR belongs to this run and to these settings. Programs of a run that was
# killed may outlive it; they are waited for.
open_run_dir() {
    same_settings "$1/settings" "$2"
    command -v flock >/dev/null || return 0
    exec 9>"$1/lock"
    if flock -n 9; then return; fi
    say "waiting for programs of another run in $1 to end"
    flock 9
}

# writing FILE COMMAND…: the command's output becomes FILE only if the command succeeds.
writing() {
    local file=$1 status=0
    shift
    "$@" >"$file.part" || status=$?
    if ((status == 0)); then mv "$file.part" "$file" || status=$?; fi
    if ((status)); then rm -f "$file.part"; fi
    return "$status"
}

# in_parallel COUNT FUNCTION ITEM…: call FUNCTION on every item, COUNT at a time; stop at a failure.
# Jobs leave word of a failure themselves: `wait -n` forgets one of two that end at the same time.
in_parallel() {
    local count=$1 function=$2 running=0 failures item
    shift 2
    failures=$(mktemp)
    for item in "$@"; do
        if ((running >= count)); then
            wait -n || true
            running=$((running - 1))
        fi
        if [[ -s $failures ]]; then break; fi
        {
            trap '(($? == 0)) || echo failed >>"$failures"' EXIT
            "$function" "$item"
        } &
        running=$((running + 1))
    done
    while [[ ! -s $failures ]] && ((running > 0)); do
        wait -n || true
        running=$((running - 1))
    done
    if [[ ! -s $failures ]]; then
        rm "$failures"
        return
    fi
    rm "$failures"
    return 1
}
