#!/usr/bin/env bash
# usage: bash scripts/gpu.sh [--minutes 8] [--output DIR] [--dry-run]
#
# Tests and times the plugin on the GPU of this machine: every encoding beside stock fairseq, torch's
# own attention beside the plain way, and two trainings of the quickstart. Each part has its share of
# the time. Results of what was done stay when a part is cut; started again with the same DIR
# (runs/gpu), the command repeats only parts that are not done. It writes DIR/gpu.json and DIR/gpu.md,
# and ends with a verdict for attention and per encoding.
#
#   --minutes N   for all parts together (8)
#   --output DIR  folder of the results (runs/gpu)
#   --dry-run     all parts on the CPU with tiny sizes, in minutes: it shows that the parts run
#
# An environment on the PATH is used as it is; where there is none, scripts/setup.sh makes one first.
set -euo pipefail
here=$PWD
CDPATH= cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

case " $* " in
  *" --help "* | *" -h "*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" && exit ;;
esac
# shellcheck source=scripts/env.sh
command -v fairseq-train >/dev/null || source scripts/env.sh
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
exec python scripts/gpu_check.py --started-in "$here" "$@"
