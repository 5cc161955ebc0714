#!/usr/bin/env bash
# usage: bash scripts/setup.sh [options]
#
# Makes a Python environment with fairseq and this plugin in .venv; quick when that is done.
# An active environment (virtualenv or conda) that holds a working fairseq is used instead:
# what it holds stays as it is, only what is missing is added.
#
#   --venv DIR       make or complete the environment in DIR (or set POSENC_VENV)
#   --python PATH    make it with this Python, 3.10 to 3.13 (or set PYTHON);
#                    default: the first of 3.11, 3.12, 3.13 and 3.10 that works here, or that uv
#                    installs
#   --torch VERSION  this torch, e.g. 2.4.1+cu121; default: the one that is there, else the
#                    tested one (scripts/constraints*.txt), for the CPU where there is no GPU and
#                    the package index has that build
#   --gpu            torch for GPUs, also where there is none, as on the login node of a cluster
#   --extra test     also what the tests need: pytest, mypy, ruff
#   --print-bin      print the folder with the environment's programs to standard output
#   --help           show this
set -euo pipefail

here=$(CDPATH= cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
venv=${POSENC_VENV:-} wanted_python=${PYTHON:-} wanted_torch="" gpu="" extras="" print_bin=""

die() {
  echo "setup: error: $*" >&2
  exit 1
}

step() { printf 'setup: [%3d s] %s\n' "$SECONDS" "$*"; }

parse_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" && exit 0 ;;
      --print-bin) print_bin=yes && shift && continue ;;
      --gpu) gpu=yes && shift && continue ;;
      --venv | --python | --torch | --extra) ;;
      *) die "unknown option $1 (see --help)" ;;
    esac
    [ -n "${2:-}" ] || die "$1 needs a value (see --help)"
    case $1 in
      --venv) venv=$2 ;;
      --python) wanted_python=$2 ;;
      --torch) wanted_torch=$2 ;;
      --extra) [ "$2" = test ] || die "unknown extra $2: there is only 'test'" && extras=test ;;
    esac
    shift 2
  done
  case $wanted_torch in
    "" | [0-9]*.[0-9]*) ;;
    *) die "--torch takes a version such as 2.4.1 or 2.4.1+cu121, not '$wanted_torch'" ;;
  esac
}

# Version managers leave programs on the PATH that only fail: run it, read what it says.
python_version() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' </dev/null 2>/dev/null || true
}

imports() { "$python" -c "import $1" </dev/null >/dev/null 2>&1; }

# Prints a Python that can make an environment, and that the package takes: Debian 12's 3.11.2 is
# too old (see requires-python in pyproject.toml).
find_python() {
  local version name names found="" old=""
  for version in 3.11 3.12 3.13 3.10; do
    names=(python3 "python$version")
    if [ -n "$wanted_python" ]; then
      names=("$wanted_python")
    elif command -v uv >/dev/null; then
      names+=("$(uv python find --no-project "$version" 2>/dev/null)")
    fi
    for name in "${names[@]}"; do
      [ "$(python_version "$name")" = "$version" ] || continue
      if ! "$name" -c 'import tarfile; tarfile.data_filter' </dev/null >/dev/null 2>&1; then
        old=$name && continue
      fi
      if "$name" -c 'import ensurepip, venv' </dev/null 2>/dev/null; then echo "$name" && return; fi
      found=$name
    done
  done
  [ -z "$found" ] || die "$found has no venv or no ensurepip module and cannot make an environment:" \
    "'apt-get install python$(python_version "$found")-venv', or name another with --python"
  if [ -n "$old" ]; then
    old="$old is Python $("$old" -c 'import platform; print(platform.python_version())'), but 3.10.12"
    old="$old, 3.11.4 or any 3.12 or 3.13 is needed"
    [ -z "$wanted_python" ] || die "$old: name another (--python, PYTHON)"
  fi
  version=$(python_version "${wanted_python:-python3}")
  [ -z "$wanted_python" ] || die "$wanted_python is ${version:+Python $version, }no working Python" \
    "from 3.10 to 3.13: name another (--python, PYTHON)"
  if command -v uv >/dev/null && uv python install 3.11 >&2 &&
    name=$(uv python find --no-project 3.11); then echo "$name" && return; fi
  [ -z "$old" ] || die "$old: 'uv python install 3.11' and 'conda create -n posenc python=3.11' make" \
    "one, or name one with --python"
  die "no Python from 3.10 to 3.13 found (python3 is ${version:-missing}): install one, e.g." \
    "'apt-get install python3.11 python3.11-venv python3.11-dev', 'uv python install 3.11' or" \
    "'conda create -n posenc python=3.11', or name one with --python"
}

# Sets environment, its python, state (our notes in it) and ours: whether this script made it, so
# that what it holds may be replaced.
set_environment() {
  environment=$1
  if [ -d "$1" ]; then environment=$(CDPATH= cd -P "$1" && pwd); fi
  case $environment in /*) ;; *) environment=$PWD/$environment ;; esac
  python=$environment/bin/python state=$environment/.fairseq_posenc ours=""
  if [ ! -f "$state/owned" ]; then return; fi
  ours=yes
  [ "$(cat "$state/owned")" = "$environment" ] ||
    die "$environment was made as $(cat "$state/owned") and cannot be moved: remove it, run again"
}

choose_environment() {
  local active
  if [ -z "$venv$wanted_python$wanted_torch" ]; then
    for active in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
      [ -n "$active" ] || continue
      set_environment "$active"
      if is_complete || imports fairseq; then return; fi
    done
  fi
  set_environment "${venv:-$root/.venv}"
}

# Refuses a folder of something else, and a Python that cannot make the environment or did not.
check_environment() {
  local have
  [ -f "$state/begun" ] || [ -n "$(python_version "$python")" ] ||
    [ -z "$(find "$environment" -mindepth 1 -maxdepth 1 ! -name .fairseq_posenc 2>/dev/null)" ] ||
    die "$environment is not a working Python environment: remove it, or name another" \
      "(--venv or POSENC_VENV)"
  if [ ! -f "$state/begun" ] && [ -z "$wanted_torch" ]; then
    refuse_cpu_torch "$(torch_version 2>/dev/null || true)"
  fi
  [ -n "$wanted_python" ] || return 0
  find_python >/dev/null
  have=$(python_version "$python")
  [ "${have:-$(python_version "$wanted_python")}" = "$(python_version "$wanted_python")" ] ||
    die "$environment holds Python $have: name another one (--venv or POSENC_VENV)"
}

fingerprint() {
  {
    printf '%s\n' "$root" "$environment"
    cat "$here"/setup.sh "$here"/constraints*.txt "$root/fairseq_posenc/version.py"
    sed '/^\[tool\.ruff\]/,$d' "$root/pyproject.toml"
  } | cksum
}

torch_version() {
  "$python" -c 'from importlib.metadata import version; print(version("torch"))' </dev/null
}

# With --gpu, what is there stays: it is not to be taken for what was asked for.
refuse_cpu_torch() { # version of torch
  case $gpu,$1 in
    yes,*+cpu) die "$environment has torch for the CPU: remove it, and give --gpu again" ;;
  esac
}

# The stamp is written last: fingerprint, version of torch, "-" and the extras.
is_complete() {
  local hash torch have
  [ -x "$python" ] && [ -f "$state/stamp" ] || return 1
  { read -r hash && read -r torch && read -r have; } <"$state/stamp" || return 1
  [ "$hash" = "$(fingerprint)" ] || return 1
  case $wanted_torch in "" | "$torch" | "${torch%%+*}") ;; *) return 1 ;; esac
  refuse_cpu_torch "$torch"
  case $have in *"$extras"*) ;; *) return 1 ;; esac
  [ -z "$wanted_python" ] || [ "$(python_version "$python")" = "$(python_version "$wanted_python")" ]
}

take_lock() {
  mkdir -p "$state" 2>/dev/null ||
    die "cannot write to $environment: name another one (--venv or POSENC_VENV)"
  command -v flock >/dev/null || return 0
  exec 9>"$state/lock"
  if flock -n 9; then return; fi
  step "waiting for another set-up of $environment"
  flock 9
}

# Makes the environment where there is none. One that was never complete is made anew, as pip takes
# what it half installed for installed; one that was may have packages of the user's.
make_environment() {
  local base
  if [ -f "$state/begun" ]; then
    find "$environment" -mindepth 1 -maxdepth 1 ! -name .fairseq_posenc -exec rm -rf {} +
  fi
  if [ -n "$(python_version "$python")" ]; then return; fi
  base=$(find_python) || exit 1
  touch "$state/begun"
  echo "$environment" >"$state/owned"
  ours=yes
  step "making $environment with Python $(python_version "$base"): it takes some minutes, and 2 GB of" \
    "disk${extras:+ (the tests: 1 GB more)}, or 5 where the package index has torch with CUDA alone"
  "$base" -m venv "$environment" </dev/null >"$state/venv.log" 2>&1 ||
    die "$base -m venv failed: $(tail -n 1 "$state/venv.log")"
}

pinned() { sed -n "s/^$1==//p" "$pins"; } # project

pip_install() {
  "$python" -m pip --no-input --disable-pip-version-check install "$@" </dev/null \
    >"$state/pip.log" 2>&1
}

pip_failed() { # what
  ! grep -q 'No matching distribution found for torch==' "$state/pip.log" ||
    die "no package torch $torch for Python $version in the package index: choose another with" \
      "--torch (tested: $(pinned torch)); for CUDA builds (+cu...) add PyTorch's own index with" \
      "PIP_EXTRA_INDEX_URL"
  grep '^ *ERROR: ' "$state/pip.log" | tail -n 5 >&2 || tail -n 5 "$state/pip.log" >&2
  die "could not install $1; all that pip said: $state/pip.log"
}

install_torch() {
  local build=("cython" "numpy" "setuptools<81" "wheel")
  torch=${wanted_torch:-$(pinned torch)}
  step "installing torch $torch and what builds fairseq"
  # newer ones refuse what fairseq 0.12.2 requires
  if [ -n "$ours" ] && [ "$version" = 3.10 ]; then
    pip_install "pip==$(pinned pip)" || pip_failed pip
  fi
  if [ -z "$wanted_torch$gpu" ] && ! command -v nvidia-smi >/dev/null &&
    pip_install -c "$state/constraints.txt" "torch==$torch+cpu" "${build[@]}"; then
    step "note: this torch is for the CPU, as there is no GPU here; if jobs elsewhere have some: --gpu"
    return
  fi
  pip_install -c "$state/constraints.txt" "torch==$torch" "${build[@]}" || pip_failed torch
}

install_fairseq() {
  local options=(--no-deps --no-build-isolation) bin=$state/bin uri
  if [ "$version" = 3.10 ]; then
    # where its build sees torch it compiles sources that the archive lacks
    options=(--no-deps)
  elif [ "$torch" != "$(pinned torch)" ]; then
    # a build in pip's cache may belong to another torch
    options+=(--no-cache-dir)
  fi
  step "installing $fairseq $(pinned "$fairseq"): compiling takes a minute or two"
  printf '[build_ext]\nparallel = %s\n' "$(getconf _NPROCESSORS_ONLN)" >"$state/build.cfg"
  # With ninja, torch compiles every extension from one build file, which those that are compiled at
  # the same time overwrite; it does without one that does not work.
  mkdir -p "$bin"
  printf '#!/bin/sh\nexit 1\n' >"$bin/ninja"
  chmod +x "$bin/ninja"
  uri=$("$python" -c 'import pathlib, sys; print(pathlib.Path(sys.argv[1]).as_uri())' "$pins")
  if PIP_CONSTRAINT=$uri DIST_EXTRA_CONFIG=$state/build.cfg CFLAGS="-g0 ${CFLAGS:-}" \
    PATH=$bin:$PATH pip_install "${options[@]}" "$fairseq==$(pinned "$fairseq")"; then
    return
  fi
  command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
    die "fairseq is compiled here, and there is no C++ compiler: 'apt-get install g++'"
  "$python" -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' \
    2>/dev/null ||
    die "fairseq is compiled here, and Python.h is missing: 'apt-get install python$version-dev'"
  pip_failed fairseq
}

# Says so where the plugin of another clone gives way: an environment has one.
tell_replaced() {
  local there
  there=$("$python" -I -c 'from importlib.util import find_spec
print(find_spec("fairseq_posenc").origin)' </dev/null 2>/dev/null) || return 0
  case $there in
    "$root"/* | "") ;;
    *) step "note: until now $environment had the plugin of ${there%/fairseq_posenc/*}; that needs" \
      "an environment of its own (--venv, POSENC_VENV)" ;;
  esac
}

install_everything() {
  local before="" after=""
  version=$(python_version "$python")
  case $version in
    3.10) pins=$here/constraints-3.10.txt fairseq=fairseq ;;
    3.11 | 3.12 | 3.13) pins=$here/constraints.txt fairseq=fairseq-fixed ;;
    *) imports fairseq || die "$environment holds Python $version and no fairseq: name another" \
      "one (--venv or POSENC_VENV)" ;;
  esac
  step "completing $environment"
  if [ -n "$ours" ]; then
    # torch, and what it requires, may be another
    sed '/^torch==/d' "$pins" >"$state/constraints.txt"
  else
    "$python" -m pip list --format=freeze --exclude fairseq_posenc >"$state/constraints.txt"
  fi
  if ! imports fairseq || [ -n "$wanted_torch" ]; then
    install_torch
    install_fairseq
  fi
  if [ -n "$ours" ]; then
    step "installing libraries${extras:+, and those of the tests}"
    # all are named, with all that they require that is used here
    [ -n "$extras" ] || before='/^# export/,$d'
    sed -e "/^torch==/d; /^fairseq/d; /^pip==/d; $before" "$pins" >"$state/libraries.txt"
    pip_install --no-deps -r "$state/libraries.txt" || pip_failed "the libraries"
    after=" --no-deps --no-build-isolation"
  fi
  step "installing the plugin and trying fairseq"
  tell_replaced
  # shellcheck disable=SC2086 # the options are words
  pip_install -c "$state/constraints.txt"$after -e "$root[tools,recipes${extras:+,$extras}]" ||
    pip_failed "the plugin"
  "$python" -c 'import fairseq' </dev/null >"$state/import.log" 2>&1 ||
    die "fairseq in $environment cannot be imported: $(tail -n 1 "$state/import.log")"
}

set_up() {
  # what was asked for earlier stays installed when something changes
  if [ -f "$state/stamp" ]; then mv "$state/stamp" "$state/stamp.before"; fi
  if grep -qs '^-.*test' "$state/stamp.before"; then extras=test; fi
  make_environment
  install_everything
  torch=$(torch_version)
  printf '%s\n' "$(fingerprint)" "$torch" "-$extras" >"$state/stamp.part"
  mv "$state/stamp.part" "$state/stamp"
  rm -f "$state/begun" "$state/stamp.before"
  step "done: source '$environment/bin/activate'"
}

parse_options "$@"
# these would send packages elsewhere than into the environment
unset PIP_USER PIP_TARGET PIP_PREFIX
if [ -n "$print_bin" ]; then exec 3>&1 1>&2; else exec 3>/dev/null; fi
choose_environment
if ! is_complete; then
  check_environment
  [ -d "$environment" ] || find_python >/dev/null || exit 1
  take_lock
  set_environment "$environment" # as it is now: another set-up may have made it
fi
if is_complete; then
  [ -n "$print_bin" ] || echo "setup: $environment is complete"
else
  set_up
fi
echo "$environment/bin" >&3
