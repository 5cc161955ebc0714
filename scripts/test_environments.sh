#!/usr/bin/env bash
# usage: bash scripts/test_environments.sh [3.10] [3.11] [3.12] [3.13] [newest] [-- options of test.sh]
#
# Runs the tests under several Pythons (default: all four), one after the other, each in an
# environment of its own (.venv310, .venv311 …), which is made where it is missing, and
# prints a line for each. What the tests say is in runs/tests/<Python>.log.
# A Python is taken from the PATH, from pyenv or from uv. `newest` is the newest Python of these
# but 3.10 with the newest torch of the package index, in .venvnewest.
# Exits with status 1 if tests fail, or else with 3 if a Python is missing.
set -euo pipefail

root=$(CDPATH= cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$root/runs/tests
# shellcheck source=scripts/pythons.sh
source "$root/scripts/pythons.sh"

usage() {
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"
}

# The newest that pip would install: `pip index` also names versions that pip may not take here.
newest_torch() { # Python
  "$1" -m pip --disable-pip-version-check install --dry-run --ignore-installed --no-deps --quiet \
    --report - torch 2>/dev/null |
    "$1" -c 'import json, sys; print(json.load(sys.stdin)["install"][0]["metadata"]["version"])'
}

test_with() { # environment options...
  local name=$1 log=$logs/$1.log python torch choice=()
  shift
  if [ "$name" != newest ]; then
    python=$(find_python "$name") || python=""
  elif python=$(find_python 3.13 || find_python 3.12 || find_python 3.11); then
    torch=$(newest_torch "$python" 2>/dev/null) || torch=""
    [ -n "$torch" ] || { echo "pip cannot say which torch is the newest" >"$log" && return 1; }
    choice=(--torch "$torch")
  else
    name=3.11
  fi
  if [ -z "$python" ]; then
    echo "there is no Python $name; install it, e.g. 'uv python install $name'" >"$log"
    return 3
  fi
  bash "$root/scripts/test.sh" --venv "$root/.venv${name/./}" --python "$python" "${choice[@]}" \
    --no-style "$@" >"$log" 2>&1 || return 1
}

versions=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --) shift && break ;;
    3.10 | 3.11 | 3.12 | 3.13 | newest) versions+=("$1") && shift ;;
    *) echo "test_environments.sh: error: unknown Python $1 (see --help)" >&2 && exit 2 ;;
  esac
done
[ ${#versions[@]} -gt 0 ] || versions=(3.10 3.11 3.12 3.13)

mkdir -p "$logs"
status=0
for version in "${versions[@]}"; do
  start=$SECONDS outcome=passed ended=0
  test_with "$version" "$@" || ended=$?
  case $ended in
    0) ;;
    3) outcome=missing status=$((status == 1 ? 1 : 3)) ;;
    *) outcome=failed status=1 ;;
  esac
  echo "$version  $outcome  $((SECONDS - start)) s  $(grep . "$logs/$version.log" | tail -n 1)"
done
exit "$status"
