# The options that the WMT recipes share, and their defaults; see wmt.sh.

RAW_DIR='' DATA_DIR='' URL='' DEVICE='' JOBS='' GPUS='' GPU_MEMORY='' MAX_TOKENS='' BATCH='' UPDATES='' ARCH=''
BPE='' DICTIONARY='' WORKERS=$(cores) PLAN=no SMOKE=no KEEP_CHECKPOINTS=no ADMIN=no SLURM=no
FLAGS='--plan --slurm --smoke' JOINED=(--joined-dictionary)
MULTIPLE=1 ADD=() READY='' MOSES='' SWEEP=() SWEEP_SETTING='' AVERAGE_OPTIONS=() EXTRA=()

wmt_usage() {
    cat <<HELP
  --smoke             everything with tiny models on the small archives in recipes/smoke, in a few
                      minutes, offline
  --plan              print the downloads, the batch and the commands, and stop
  --slurm             print a script that submits the trainings to SLURM as an array of jobs, and stop
  --raw-dir DIR       take the archives from here, under the names that --plan prints
  --data-dir DIR      download them into here, once for all recipes (--run-dir/raw)
  --url LIST          download them from here, mirrors with the paths of the original sites
  --add PREFIX        more training text, PREFIX.<language> or .gz; may be given several times
  --ready DIR         training text in place of the archives': raw, train.raw.<language>; or tokenised
                      or cut into subwords already: train.tok.<language>, newstest2014.tok.<language> …,
                      or train.bpe.<language> … and codes, or Google's wmt16_en_de, unpacked
  --moses DIR         tokenise by the Perl scripts of this checkout of mosesdecoder, as the authors
                      did, rather than by sacremoses, which differs in a few lines
  --run-dir DIR       results ($RUN_DIR)
  --settings LIST     comma-separated (${SETTINGS// /,})
  --encodings LIST    comma-separated rows, \`encoding [option…]\` or \`label=encoding [option…]\`:
$(printf '                      %s,\n' "${ROWS[@]}" | sed '$s/,$//')
  --seeds LIST        (${SEEDS// /,}${SEEDS_NOTE:+; $SEEDS_NOTE})
  --tables LIST       of the papers (${TABLES// /,})
  --arch NAME         another architecture
  --updates N         another length of the training, in updates
  --batch N           other tokens per update
  --bpe N             another number of BPE operations
  --device cpu|cuda   (cuda if there is one)
  --gpus N            (all) of each node; --jobs divides them
  --gpu-memory N      GiB of the smallest GPU (as found), from which --max-tokens is estimated
  --max-tokens N      the most tokens per GPU and step (4096 on a CPU)
  --jobs N            trainings at a time (1; number of cores on a CPU)
  --cell N            only the N-th training of the plan, its translations and scores
  --hours N           end a training with a checkpoint before N hours are over; the exit status is 75
  --workers N         processes for preparation (number of cores)
  --keep-checkpoints yes|no  of finished trainings, beside the scored model ($KEEP_CHECKPOINTS)
  --stage N           start at this stage: 1 set-up, 2 download, 3 text, 4 subwords, 5 binarise,
  --stop-stage N      stop after this one: 6 train, 7 translate, 8 score,
                      9 analyse (the paper's figures), 10 table

Tokens per update are the paper's on any number of GPUs: --max-tokens × --update-freq × GPUs. With
several GPUs a training runs under torchrun; in a SLURM job of several nodes, started once there,
under srun. Add \`-- --fp16\` or \`-- --bf16\`. Started again, the recipe continues where it was.
HELP
}

own_option() { wmt_option "$@"; }

wmt_option() { [[ $1 == --add ]] && ADD+=(--add "$2"); }

parse_options() {
    local known=$SETTINGS setting
    OPTIONS+=' raw-dir data-dir url ready settings, tables, arch updates batch bpe gpus gpu-memory max-tokens'
    OPTIONS+=' workers keep-checkpoints moses cell hours'
    parse_arguments "$@"
    whole_numbers UPDATES BATCH BPE GPUS GPU_MEMORY MAX_TOKENS WORKERS CELL HOURS
    for setting in $SETTINGS; do
        [[ " $known " == *" $setting "* ]] || die "--settings are ${known// /, }, not $setting"
    done
    no_repeats --settings $SETTINGS
    [[ -z $READY || ${#ADD[@]} == 0 ]] || die "--ready and --add exclude each other"
    [[ -z $READY || -z $MOSES ]] || die "--ready and --moses exclude each other: that text has its tokens"
    [[ $KEEP_CHECKPOINTS == yes || $KEEP_CHECKPOINTS == no ]] ||
        die "--keep-checkpoints is yes or no, not $KEEP_CHECKPOINTS"
    RAW=${RAW_DIR:-${DATA_DIR:-$RUN_DIR/raw}}
}
