#!/usr/bin/env bash
# usage: bash scripts/test_environments.sh [3.10] [3.11] [3.12] [-- options of test.sh and pytest]
#
# Runs the tests under several Pythons (default: all three), one after the other, each in an
# environment of its own (.venv310, .venv311, .venv312), which is made where it is missing, and
# prints a line for each. What the tests say is in runs/tests/<Python>.log.
# A Python is taken from the PATH, from pyenv or from uv.
# Exits with status 1 if tests fail or a Python is missing.
set -euo pipefail

root=$(CDPATH= cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$root/runs/tests

usage() {
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"
}

is_python() { # program version
  [ "$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$2" ]
}

find_python() { # version
  local candidate
  for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python \
    "$(uv python find "$1" 2>/dev/null)"; do
    if is_python "$candidate" "$1"; then echo "$candidate" && return; fi
  done
  return 1
}

test_with() { # version options...
  local version=$1 log=$logs/$1.log python
  shift
  if ! python=$(find_python "$version"); then
    echo "there is no Python $version; install it, e.g. 'uv python install $version'" >"$log"
    return 1
  fi
  bash "$root/scripts/test.sh" --venv "$root/.venv${version/./}" --python "$python" "$@" \
    >"$log" 2>&1
}

versions=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --) shift && break ;;
    3.10 | 3.11 | 3.12) versions+=("$1") && shift ;;
    *) echo "test_environments.sh: error: unknown Python $1 (see --help)" >&2 && exit 2 ;;
  esac
done
[ ${#versions[@]} -gt 0 ] || versions=(3.10 3.11 3.12)

mkdir -p "$logs"
status=0
for version in "${versions[@]}"; do
  start=$SECONDS outcome=passed
  test_with "$version" "$@" || outcome=failed status=1
  echo "$version  $outcome  $((SECONDS - start)) s  $(grep . "$logs/$version.log" | tail -n 1)"
done
exit "$status"
