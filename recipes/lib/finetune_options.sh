# The options that the fine-tuning recipes share, and their defaults; see finetune.sh.

PRETRAIN='' TEXT='' RAW_DIR='' URL='' ARCH=posenc_bert_base LRS='1e-5 2e-5 3e-5 4e-5' SEEDS='1 2 3 4 5'
EPOCHS='' BATCH=32 WARMUP_PERCENT=10 INTERVAL=3500 KEEP=no DEVICE='' JOBS='' SMOKE=no
FLAGS='--plan --slurm --smoke' SLURM=no EXTRA=()
source recipes/lib/bert_rows.sh
# by row: checkpoint and its checksum; by task: updates, those of warm-up, and the metric that chooses
# checkpoints
declare -A PRETRAINED=() CHECKSUMS=() UPDATES=() WARMUP=() METRICS=()

finetune_usage() {
    cat <<HELP
  --smoke             everything with tiny models on the small texts in recipes/smoke, in a few
                      minutes, offline
  --plan              print every command from data to table as a script for 'bash -e', without any
                      set-up, for a GPU unless --device says cpu, and stop
  --slurm             print a script that submits the cells to SLURM as an array of jobs, with a GPU
                      each, and stop; the models must be there
  --pretrain-dir DIR  results of $PRETRAIN_RECIPE
                      ($PRETRAIN_DIR): models in <row>/seed1/checkpoint_last.pt, subwords and
                      dict.txt in bin
  --pretrained ROW=CHECKPOINT   another model for a row; may be given several times
  --text FOLDER       subwords and dict.txt from here (output of posenc prepare text)
  --pretrain OPTIONS  first run that recipe for rows without --pretrained, with these options, for
                      example '--text documents.txt --updates 20000', or '-- --bf16'
  --url URL           download the files from here, by their names (their official addresses)
  --run-dir DIR       results ($RUN_DIR)
  --encodings LIST    comma-separated rows, \`encoding [option…]\` or \`label=encoding [option…]\`:
$(printf '                      %s,\n' "${ROWS[@]}" | sed '$s/,$//')
$(bert_rows_usage)
  --tasks LIST        comma-separated (${TASKS// /,})
  --arch NAME         of the models ($ARCH)
  --length N          longest input, as in pre-training ($LENGTH)
  --lrs LIST          peak learning rates (${LRS// /,})
  --seeds LIST        (${SEEDS// /,})
  --batch N           examples per update ($BATCH)
  --interval N        updates between checkpoints, which are also validations ($INTERVAL)
  --tables LIST       tables of the paper to compare with (${TABLES// /,})
  --keep-checkpoints yes|no  of finished cells ($KEEP)
  --device cpu|cuda   (cuda if there is one)
  --jobs N            cells at a time (number of GPUs, or of cores on a CPU)
  --cell N            only the N-th cell
  --hours N           end a training with a checkpoint before N hours are over; the exit status is 75
  --stage N           start at this stage: 1 set-up, 2 pre-trained models, 3 data, 4 fine-tune,
  --stop-stage N      stop after this one: 5 table

Every cell runs on one GPU; there are as many at a time as there are GPUs. Started again, it continues
where it was, with more rows, tasks, learning rates or seeds if you like.

Defaults are those of Chen et al. 2021, Table 7. Our reading where the paper is silent: Adam with
β (0.9, 0.999) and ε 1e-6, weight decay 0.01, gradients clipped at norm 1, dropout 0.1 also before
the classifier, linear decay to 0, as in BERT; a last checkpoint at the end beside one every 3,500
updates; of the learning rates the one with the best median over seeds on the English development set.
HELP
}

own_option() {
    case $1 in
        --pretrained) take_pretrained "$2" ;;
        --rows) take_rows "$2" ;;
        *) false ;;
    esac
}

parse_options() {
    OPTIONS+=' pretrain-dir text pretrain raw-dir url tasks, arch length lrs, epochs batch interval tables,'
    OPTIONS+=' keep-checkpoints:KEEP cell hours'
    parse_arguments "$@"
    whole_numbers LENGTH EPOCHS BATCH INTERVAL CELL HOURS
    no_repeats --tasks $TASKS
    no_repeats --lrs $LRS
    [[ $KEEP == yes || $KEEP == no ]] || die "--keep-checkpoints is yes or no, not $KEEP"
}

# take_pretrained ROW=CHECKPOINT
take_pretrained() {
    [[ $1 =~ ^([A-Za-z0-9_.-]+)=(.+)$ ]] || die "--pretrained wants ROW=CHECKPOINT, not $1"
    [[ -r ${BASH_REMATCH[2]} ]] || die "cannot read the checkpoint ${BASH_REMATCH[2]}"
    PRETRAINED[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
}
