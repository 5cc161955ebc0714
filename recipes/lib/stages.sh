# Stages, as speech and translation recipes have them: numbered, timed, skipped when complete.
# A recipe sources this file, calls `stage NUMBER TITLE MARK COMMAND…` for each, and may set
# FIRST_STAGE and LAST_STAGE from its options.

unset CDPATH # with one, cd may go to a folder of the same name elsewhere

source recipes/lib/gpus.sh

FIRST_STAGE=${FIRST_STAGE:-1}
LAST_STAGE=${LAST_STAGE:-99}
PLAN=no CELL=''
TEMPORARY=() # files and folders that go in the end
trap '((${#TEMPORARY[@]} == 0)) || rm -rf "${TEMPORARY[@]}"' EXIT

# With --plan what is said is a comment among commands.
say() {
    if [[ $PLAN == yes ]]; then printf '# %s\n' "$*"; else printf '%s | %s\n' "$(date +%H:%M:%S)" "$*"; fi
}

# print_command WORD…: as one types it; the variables that loops of a plan have remain variables.
print_command() {
    ((!$#)) || { printf '%q ' "$@" && echo; } | sed -E 's/\\\$(seed|lr|updates|warmup)/$\1/g'
}

# execute COMMAND…: run it, or with --plan print it.
execute() {
    if [[ $PLAN == yes ]]; then print_command "$@"; else "$@"; fi
}

# execute_line WORD…: a line of shell, with pipes and files; what it makes is whole or is not there.
execute_line() {
    local line=$*
    local file=${line##*>}
    if [[ $PLAN == yes ]]; then echo "$line"; else eval "$line.part" && eval "mv $file.part $file"; fi
}

die() {
    printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# How many cores there are; nproc alone would take OMP_NUM_THREADS for it.
cores() { env -u OMP_NUM_THREADS nproc; }

# stage NUMBER TITLE MARK COMMAND…: run COMMAND, then touch MARK; with MARK there, run nothing. MARK `-`
# always runs the command, which then looks after its own parts. With --cell only what is of cells runs.
stage() {
    local number=$1 title=$2 mark=$3 started=$SECONDS
    shift 3
    if ((number < FIRST_STAGE || number > LAST_STAGE)); then return; fi
    if [[ -n $CELL && " source all_cells fine_tune " != *" $1 "* ]]; then return; fi
    say "stage $number: $title"
    if [[ $PLAN == yes ]]; then
        "$@"
        return
    fi
    if [[ -e $mark ]]; then
        say "stage $number: $title: done before"
        return
    fi
    "$@"
    if [[ $mark != - ]]; then touch "$mark"; fi
    say "stage $number: $title: finished in $((SECONDS - started)) s"
}

# The environment; where its stage is left out, it is to be there. A plan makes none. Python finds what
# is beside the recipes.
set_up() {
    if [[ $PLAN == yes ]]; then
        find_programs
        return
    fi
    stage 1 "set-up" - source scripts/env.sh
    export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
    command -v fairseq-train >/dev/null ||
        die "there is no fairseq-train: start at stage 1, or first 'source scripts/env.sh'"
}

# check_disk BYTES: end where the disk does not hold the archives of a run, of so many bytes, four times
# over: themselves, their text, its subwords and binary data. What the run has made already counts.
check_disk() {
    local free made needed=$((4 * $1))
    free=$(df --output=avail -B 1 "$RUN_DIR" | tail -n 1)
    made=$(du -s -B 1 "$RUN_DIR" | cut -f 1)
    ((free + made >= needed)) ||
        die "the disk of $RUN_DIR has $((free / 1000000)) MB left; archives of $(($1 / 1000000)) MB need" \
            "four times as much: give another --run-dir"
}

# For a plan: the environment if there is one, or else this machine's python3 without any library.
find_programs() {
    local bin
    bin=$(realpath -m "${POSENC_VENV:-.venv}")/bin
    if [[ -x $bin/fairseq-train ]]; then PATH=$bin:$PATH; fi
    if command -v fairseq-train >/dev/null; then return; fi
    say "note: there is no environment: the sizes and addresses of downloads are left out"
    python() { python3 "$@"; }
    files_of_corpus() { print_command posenc prepare pairs files "$1"; }
    if [[ -z $DEVICE ]]; then
        DEVICE=cpu
        say "note: nor is it known whether there is a GPU: this is the plan for a CPU, without" \
            "--device cuda --gpus N --gpu-memory N"
    elif [[ $DEVICE == cuda && -z ${GPUS:+$GPU_MEMORY} ]]; then
        die "there is no environment, which would find the GPUs: give --gpus and --gpu-memory"
    fi
}

# What a run is: the version of the plugin, its data, by what they hold, and the options of its
# trainings. Where it lies, on what device it runs and how many processes it has is not part of that.

# same_settings FILE OPTION…: keep in FILE what has made the results in its folder, and refuse to go on
# with results that something else has made.
same_settings() {
    local file=$1 now=${*:2} folder made
    folder=$(dirname "$file")
    mkdir -p "$folder" 2>/dev/null || die "cannot make the folder $folder"
    if [[ -e $file ]] && made_in "$folder"; then
        made=$(cat "$file")
        [[ $now == "$made" ]] || die "$folder was made with other settings" \
            "(then: $(only_in "$made" "$now"); now: $(only_in "$now" "$made")); give another --run-dir"
    else
        { writing "$file" printf '%s\n' "$now"; } 2>/dev/null || die "cannot write $file"
    fi
}

# only_in SETTINGS OTHERS: the options that OTHERS have not.
only_in() {
    local options
    options=$(diff <(echo "${1// --/$'\n'--}") <(echo "${2// --/$'\n'--}") | sed -n 's/^< //p') || true
    echo "${options:-nothing more}" | paste -s -d ' ' -
}

# made_in DIR: whether there are results, which settings and logs are not.
made_in() {
    [[ -n $(find "$1/" ! -type d ! -name '*settings' ! -name cell.json ! -name '*lock' ! -name '*.log' \
        -print -quit) ]]
}

# fingerprint PATH…: a number for what files, and the files of folders, hold, wherever they lie: their
# sizes, and the first and last 64 KiB of each.
fingerprint() {
    local path
    for path in "$@"; do [[ -r $path ]] || die "cannot read $path"; done
    for path in "$@"; do
        files_of "$path" | xargs -0 stat -L -c %s
        files_of "$path" | xargs -0 head -q -c 65536
        files_of "$path" | xargs -0 tail -q -c 65536
    done | cksum | cut -d ' ' -f 1
}

files_of() { find -L "$1" -type f ! -name '.*' -print0 | LC_ALL=C sort -z; }

# open_run_dir DIR OPTION…: this recipe alone works in DIR, whose results come from these settings.
open_run_dir() {
    local version
    if [[ $PLAN == yes ]]; then return; fi
    mkdir -p "$1" 2>/dev/null || die "cannot make the folder $1"
    lock_run_dir "$1"
    version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' fairseq_posenc/version.py)
    same_settings "$1/settings" "--version $version" "${@:2}"
}

# lock_run_dir DIR: refuses a second recipe there, but for others with --cell beside one with --cell.
# This shell and its programs inherit descriptor 9: what outlives a recipe that was killed counts, too.
lock_run_dir() {
    local status=0
    { exec 9>>"$1/lock"; } 2>/dev/null || die "cannot write $1/lock"
    flock --nonblock --conflict-exit-code 200 ${CELL:+--shared} 9 2>/dev/null || status=$?
    ((status != 200)) || die "another recipe is at work in $1: wait for its end, or give another --run-dir"
    ((status == 0)) || say "note: there are no file locks in $1: let no second recipe use it meanwhile"
}

# writing FILE COMMAND…: the command's output becomes FILE only if the command succeeds.
writing() {
    local file=$1 part=$1.$$.part status=0
    shift
    if [[ $PLAN == yes ]]; then
        echo "$(print_command "$@")>$(print_command "$file")"
        return
    fi
    "$@" >"$part" || status=$?
    if ((status == 0)); then mv "$part" "$file" || status=$?; fi
    if ((status)); then rm -f "$part"; fi
    return "$status"
}

# in_parallel COUNT FUNCTION ITEM…: call FUNCTION on every item, COUNT at a time; stop at a failure.
# Jobs leave word of a failure themselves: `wait -n` forgets one of two that end at the same time.
in_parallel() {
    local count=$1 function=$2 running=0 failures item
    shift 2
    if [[ $PLAN == yes ]]; then count=1; fi
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
