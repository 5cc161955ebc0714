# shellcheck shell=bash
# A recipe's script has arrays and ends with `recipe KIND "$@"`, which hands them, word for word, to the one
# program behind all recipes, python -m recipes.lib; recipes/lib/config.py tells what the arrays of all kinds mean.
# Any python3 can print a plan; for all else the program makes or finds the environment itself.
set -euo pipefail
unset CDPATH # with one, cd may go to a folder of the same name elsewhere
export PYTHONIOENCODING=utf-8

# recipe KIND ARGUMENT…: each array is passed as its name, the number of its words, and the words.
recipe() {
    local NAME WORDS=("$1" "$(realpath "$0")" "$PWD") TOP
    shift
    for NAME in $(compgen -A arrayvar); do
        [[ $NAME == [a-z]* ]] || continue
        declare -n ARRAY=$NAME
        WORDS+=("$NAME" "${#ARRAY[@]}" "${ARRAY[@]}")
        unset -n ARRAY
    done
    TOP=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
    cd "$TOP"
    PYTHONPATH=$TOP${PYTHONPATH:+:$PYTHONPATH} exec python3 -m recipes.lib "${WORDS[@]}" -- "$@"
}
