#!/usr/bin/env bash
# usage: bash scripts/test.sh [--venv DIR] [--python PATH] [--torch VERSION] [--no-style]
#   [pytest's options]
#
# Sets up what the tests need (see setup.sh), checks style and types with ruff and mypy (but for
# --no-style), and runs pytest, as many tests at a time as there are cores (`-n 0`: one by one;
# `--cov`: coverage, slowly).
# The last lines name what was skipped and why.
# Exits with pytest's status, or where the tests pass with that of style and types.
set -euo pipefail

root=$(CDPATH= cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"
}

check_style() {
  command -v ruff >/dev/null || return 0
  ruff check . && ruff format --check . && mypy
}

setup=(bash "$root/scripts/setup.sh" --extra test --print-bin)
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --no-style) check_style() { :; } && shift && continue ;;
    --venv | --python | --torch) ;;
    *) break ;;
  esac
  [ $# -ge 2 ] || { echo "test.sh: error: $1 needs a value" >&2 && exit 2; }
  setup+=("$1" "$2")
  shift 2
done

bin=$("${setup[@]}")
# the tests start thousands of programs, each of which would compile the plugin again
export PATH="$bin:$PATH" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" PYTHONDONTWRITEBYTECODE=
cd "$root"
# nproc would take OMP_NUM_THREADS for the number of cores
cores=$(env -u OMP_NUM_THREADS nproc)
style=0
check_style || style=$?
tests=0
# a file's tests in one process: models that they share are trained once
python -m pytest -n "$cores" --dist loadfile "$@" || tests=$?
if [ "$tests" -ne 0 ]; then exit "$tests"; fi
exit "$style"
