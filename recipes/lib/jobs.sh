# Several jobs on one run folder, on any hosts that share it: what one has in hand the others leave alone.
# RUN_DIR/running has a file per job and a hard link to it for each thing that the job has in hand. A
# link is made by one job alone, on NFS too, and one touch of the file shows that the job lives. Of a
# dead job one other takes everything away. A job is dead if no process of it is left on this host, if
# SLURM has started it anew, or without a sign of life for STALE seconds, by the file system's clock.

BEAT=${POSENC_BEAT:-20} STALE=${POSENC_STALE:-600} RUNNING='' JOB='' ME=''

# join_jobs DIR: this shell and its programs, which inherit descriptor 9, are a job in DIR.
join_jobs() {
    HOST=$(id -un)@$(uname -n):$(readlink /proc/self/ns/pid || true)
    STARTED=${SLURM_JOB_ID:+$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}}
    JOB=$(uname -n).$$.$(date +%s) ME=$1/running/$JOB
    { mkdir -p "$1/running" && : >"$ME"; } 2>/dev/null || die "cannot write $ME"
    # open before it is written: what has words and is not open is dead
    exec 9>"$ME"
    echo "$JOB $HOST $STARTED" >&9 || die "cannot write $ME"
    if ! ln "$ME" "$ME.link" 2>/dev/null || [[ ! -e /proc/self/fd/9 ]]; then
        say "note: $1 is on a file system without hard links: let no second run use it meanwhile"
        rm -f "$ME"
        return
    fi
    rm "$ME.link"
    RUNNING=$1/running
    trap leave_jobs EXIT
    (beat </dev/null >/dev/null 2>&1 9>&- &)
    bury_those_of_this_host
}

# processes_of JOB: on this host, all that have its file open.
processes_of() {
    find /proc/[0-9]*/fd/9 -maxdepth 0 -lname "*/running/$1*" 2>/dev/null | cut -d / -f 3
}

# A job that is taken for dead, as its host has slept, ends.
beat() {
    while sleep "$BEAT" && [[ $(processes_of "$JOB") ]]; do
        touch -c "$ME"
        [[ -e $ME ]] || kill $(processes_of "$JOB")
    done
}

# Programs of a job whose shell was killed may outlive it; they are waited for.
bury_those_of_this_host() {
    local file job host _ pid
    for file in "$RUNNING"/*; do
        read -r job host _ <"$file" || continue
        pid=${job%.*} pid=${pid##*.}
        if [[ $host != "$HOST" || $job != "${file##*/}" || -e /proc/$pid/fd/9 ]]; then continue; fi
        if [[ $(processes_of "$job") ]]; then
            say "waiting for programs of another run in ${RUNNING%/*} to end"
            while [[ $(processes_of "$job") ]]; do sleep 1; done
        fi
        bury "$job" || true
    done 2>/dev/null
}

# bury JOB: what a dead job had in hand is free. Of two that find it dead, one does it.
bury() {
    ln "$ME" "$RUNNING/$1.buried" 2>/dev/null || return 1
    remove_job "$1"
    rm -f "$RUNNING/$1.buried"
}

# What a program still works on stays in hand.
leave_jobs() {
    exec 9>&-
    [[ -e $ME ]] || echo "error: another job has taken the place of $JOB, which showed no life" >&2
    [[ $(processes_of "$JOB") ]] || remove_job "$JOB"
}

# remove_job JOB: its links, and its file.
remove_job() {
    { grep -ls "^$1 " "$RUNNING"/* || true; } | xargs -r -d '\n' rm -f
}

# file_of THING: the link of who has it in hand.
file_of() {
    local thing=${1#"${RUNNING%/running}"/}
    echo "$RUNNING/${thing//\//+}"
}

# state_of FILE [SINCE]: of the job that the link belongs to: alive, dead or, where it runs elsewhere
# and has shown no life after SINCE, unknown; free if there is no such link.
state_of() {
    local job host slurm seen
    if ! { read -r job host slurm <"$1" && seen=$(stat -c %Y "$1"); } 2>/dev/null; then
        echo free
    elif [[ $host == "$HOST" ]]; then
        [[ $(processes_of "$job") ]] && echo alive || echo dead
    elif [[ $slurm && ${slurm%.*} == "${STARTED%.*}" && $slurm != "$STARTED" ]]; then
        echo dead
    else
        touch -c "$ME"
        (($(stat -c %Y "$ME") - seen <= STALE)) || { echo dead && return; }
        ((seen > ${2:-0})) && echo alive || echo unknown
    fi
}

# claim THING: take it in hand; fails where another job has it.
claim() {
    local file job _
    [[ $RUNNING ]] || return 0
    file=$(file_of "$1")
    until ln "$ME" "$file" 2>/dev/null || [[ $file -ef $ME ]]; do
        [[ -e $ME ]] || exit 1
        case $(state_of "$file") in
            free) continue ;;
            dead) read -r job _ <"$file" && bury "$job" || return 1 ;;
            *) return 1 ;;
        esac
        say "job $job has ended: what it had in hand is taken up"
    done 2>/dev/null
}

release() {
    [[ -z $RUNNING ]] || rm -f "$(file_of "$1")"
}

# hold THING: take it in hand, once no other job has it.
hold() {
    local job tries=0 _
    until claim "$1"; do
        if ((++tries == 5)) && read -r job _ <"$(file_of "$1")"; then
            say "waiting for job $job: it has $1 in hand"
        fi 2>/dev/null
        sleep $((tries < 5 ? 0 : 1)).2
    done
}

# once COMMAND…: one job at a time; what is complete the command is to find so.
once() {
    hold "${*:1:2}"
    "$@"
    release "${*:1:2}"
}

# other_jobs: whether there are some, as far as one knows.
other_jobs() {
    local file
    for file in "$RUNNING"/*; do
        case $([[ $file -ef $ME ]] || state_of "$file") in alive | unknown) return ;; esac
    done
    return 1
}

# share_cells FUNCTION CELL…: call FUNCTION on every cell that no other job has in hand, JOBS at a time;
# then on those that others have left or died with. FUNCTION does nothing where a cell is complete.
share_cells() {
    local work=$1 skipped since cell cells file state others=0
    shift
    share_cores
    open_gpus
    skipped=$(mktemp)
    while (($#)); do
        : >"$skipped"
        in_parallel "$JOBS" work_on_cell "$@"
        mapfile -t cells <"$skipped"
        set --
        if [[ $RUNNING ]]; then touch -c "$ME" && since=$(stat -c %Y "$ME"); fi
        for cell in "${cells[@]}"; do
            file=$(file_of "$(folder_of_cell "$cell")")
            while state=$(state_of "$file" "$since") && [[ $state == unknown ]]; do sleep 1; done
            if [[ $state == alive ]]; then others=$((others + 1)); else set -- "$@" "$cell"; fi
        done
    done
    rm "$skipped"
    ((others == 0)) || say "$others cells are in other jobs' hands, see $RUNNING"
}

folder_of_cell() {
    open_cell "$1"
    echo "$folder"
}

work_on_cell() {
    local thing number
    thing=$(folder_of_cell "$1")
    if claim "$thing"; then
        if [[ $DEVICE == cuda ]]; then
            number=$(take_number)
            CUDA_VISIBLE_DEVICES=$(gpus_of "$number")
            export CUDA_VISIBLE_DEVICES
        fi
        "$work" "$1"
        if [[ $DEVICE == cuda ]]; then put_back "$number"; fi
        release "$thing"
    else
        echo "$1" >>"$skipped"
    fi
}
