# shellcheck shell=bash
# source scripts/env.sh: sets up what is missing (see setup.sh) and puts the environment's programs
# (python, fairseq-train, subword-nmt ...) first on the PATH. POSENC_VENV names the environment.
posenc_bin=$(bash "$(dirname "${BASH_SOURCE[0]}")/setup.sh" --print-bin) || return 1
PATH=$posenc_bin:$PATH
export PATH
unset posenc_bin
