# A paper's batch on whatever GPUs there are: sequences (or tokens) per GPU × updates gathered × GPUs.

# divide_batch BATCH GPUS MOST [UNIT]: sets SEQUENCES (per GPU and step, at most MOST), UPDATE_FREQ
# and BATCH_MADE, their product with GPUS. That is BATCH, or where GPUS or MOST do not allow it,
# unless in pieces of less than a quarter of MOST, the nearest number; then a line says so. UNIT is
# what the batch is counted in, for that line. Also sets BATCH_NAMED, by which a run is known on
# whatever GPUs: BATCH, unless it is missed by more than 1 %.
divide_batch() {
    local batch=$1 gpus=$2 most=$3 unit=${4:-sequences} fewest frequency sequences off best=''
    fewest=$(((batch + gpus * most - 1) / (gpus * most)))
    for ((frequency = fewest; frequency <= 4 * fewest; frequency++)); do
        sequences=$(((batch + gpus * frequency / 2) / (gpus * frequency)))
        sequences=$((sequences > most ? most : sequences < 1 ? 1 : sequences))
        off=$((sequences * frequency * gpus - batch))
        if [[ -z $best ]] || ((${off#-} < best)); then
            best=${off#-} SEQUENCES=$sequences UPDATE_FREQ=$frequency
        fi
    done
    BATCH_MADE=$((SEQUENCES * UPDATE_FREQ * gpus))
    BATCH_NAMED=$((best * 100 > batch ? BATCH_MADE : batch))
    if ((best)); then
        say "note: $batch $unit do not divide among $gpus GPUs: $BATCH_MADE are taken instead"
    fi
}

# sequences_for MEMORY LENGTH VOCABULARY ARCH OPTION…: how many sequences a GPU of MEMORY MiB is
# likely to hold in training with fairseq's options (--fp16, --bf16). Bytes per token, layer and
# channel as Korthikanti et al. 2022 count them: 34 + 5 heads·length/channels at 16 bits. Beside
# them 1 GiB, 20 bytes a weight, and 5 bytes for each type at the 15 % of tokens to be predicted; of
# the memory 4 in 10 stay in reserve, as encodings differ, and larger steps are hardly faster.
sequences_for() {
    local memory=$1 length=$2 vocabulary=$3 layers=12 channels=768 heads=12 bytes=2
    local option mib_each mib_fixed most
    case $4 in
        *_tiny) layers=2 channels=128 heads=2 ;;
        *_small) layers=4 channels=512 heads=8 ;;
        *_large) layers=24 channels=1024 heads=16 ;;
    esac
    shift 4
    for option in "$@"; do
        case $option in --fp16 | --bf16 | --memory-efficient-*) bytes=1 ;; esac
    done
    mib_fixed=$((1024 + (12 * layers * channels + vocabulary) * channels * 20 / 1048576))
    mib_each=$((1 + bytes * length * (layers * channels * (34 + 5 * heads * length / channels) +
        vocabulary * 15 * 5 / 100) / 1048576))
    most=$(((memory * 6 / 10 - mib_fixed) / mib_each))
    echo $((most > 0 ? most : 1))
}

# tokens_for MEMORY VOCABULARY LAYERS CHANNELS HEADS OPTION…: how many tokens of either side a GPU of
# MEMORY MiB is likely to hold in the training of a translation model with LAYERS on either side,
# counted as in sequences_for, for sentences of 32 tokens; 20 bytes more per channel of the decoder's
# attention to the encoder, and 12 for each type.
tokens_for() {
    local memory=$1 vocabulary=$2 layers=$3 channels=$4 heads=$5 bytes=2 option mib_fixed each most
    shift 5
    for option in "$@"; do
        case $option in --fp16 | --bf16 | --memory-efficient-*) bytes=1 ;; esac
    done
    mib_fixed=$((1024 + (28 * layers * channels + vocabulary) * channels * 20 / 1048576))
    each=$((bytes * (layers * channels * (88 + 15 * heads * 32 / channels) + vocabulary * 12)))
    most=$(((memory * 6 / 10 - mib_fixed) * 1024 / (each / 1024)))
    echo $((most > 256 ? most : 256))
}

# look_at_gpus: sets GPUS and GPU_MEMORY (GiB, of the smallest) where the user has not.
look_at_gpus() {
    local found
    if [[ -n $GPUS && -n $GPU_MEMORY ]]; then return; fi
    found=$(python -c 'import torch
gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
print(len(gpus), min((gpu.total_memory for gpu in gpus), default=0) >> 30)') ||
        die "cannot count the GPUs"
    GPUS=${GPUS:-${found% *}} GPU_MEMORY=${GPU_MEMORY:-${found#* }}
    ((GPUS > 0)) || die "there is no GPU; give --device cpu"
}

# choose_launch: sets LAUNCH, the program that trains on all GPUs: torchrun, or with several nodes of
# a SLURM job srun, for which fairseq finds the other nodes itself.
choose_launch() {
    local nodes=${SLURM_JOB_NUM_NODES:-1}
    if [[ $DEVICE == cuda ]] && ((nodes > 1)); then
        LAUNCH=(srun --nodes "$nodes" --ntasks-per-node 1 --kill-on-bad-exit fairseq-train
            --distributed-port 29500 --distributed-world-size $((nodes * GPUS)))
        GPUS=$((nodes * GPUS))
    elif [[ $DEVICE == cuda ]] && ((GPUS > 1)); then
        LAUNCH=(torchrun --standalone --nproc-per-node "$GPUS" \
            "$(type -P fairseq-train || echo fairseq-train)")
    else
        # fairseq would take all GPUs on its own, whatever --gpus says
        LAUNCH=(fairseq-train --distributed-world-size 1)
    fi
}
