#!/usr/bin/env bash
# usage: bash scripts/setup.sh [options]
#
# Makes a Python environment with fairseq and this plugin in .venv; quick when that is done.
# An active environment (virtualenv or conda) that holds a working fairseq is used instead:
# what it holds stays as it is, only what is missing is added.
#
#   --venv DIR       make or complete the environment in DIR (or set POSENC_VENV)
#   --python PATH    make it with this Python, 3.10 to 3.12 (or set PYTHON);
#                    default: the first of 3.11, 3.12 and 3.10 that works here
#   --torch VERSION  this torch, e.g. 2.4.1+cu121; default: the one that is there, else the
#                    tested one (scripts/constraints*.txt)
#   --extra test     also what the tests need: pytest, hypothesis, mypy, ruff
#   --print-bin      print the folder with the environment's programs to standard output
#   --help           show this
set -euo pipefail

here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")

venv=${POSENC_VENV:-} python_option=${PYTHON:-} torch_option="" extras="" print_bin=""
environment="" state="" python="" owned="" base="" base_version=""

# shellcheck source=scripts/setup_steps.sh
source "$here/setup_steps.sh"

usage() {
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"
}

parse_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage && exit 0 ;;
      --print-bin) print_bin=yes && shift && continue ;;
      --venv | --python | --torch | --extra) ;;
      *) die "unknown option $1 (see --help)" ;;
    esac
    [ -n "${2:-}" ] || die "$1 needs a value (see --help)"
    case $1 in
      --venv) venv=$2 ;;
      --python) python_option=$2 ;;
      --torch) torch_option=$2 ;;
      --extra) extras="$extras $2" ;;
    esac
    shift 2
  done
}

check_options() {
  local unknown=${extras// test/}
  [ -z "$unknown" ] || die "unknown extra$unknown: there is only 'test'"
  case $torch_option in
    "" | [0-9]*.[0-9]*) ;;
    *) die "--torch takes a version such as 2.4.1 or 2.4.1+cu121, not '$torch_option'" ;;
  esac
  if [ -n "$python_option" ]; then
    base=$python_option base_version=$(python_version "$python_option")
    [ -n "$base_version" ] || die "$base is no working Python: name another (--python, PYTHON)"
    supported "$base_version" ||
      die "$base is Python $base_version: name a Python 3.10, 3.11 or 3.12 (--python, PYTHON)"
  fi
}

# --- which Python ---

# Version managers leave programs on the PATH that only fail: run it, read what it says.
python_version() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' </dev/null 2>/dev/null || true
}

supported() {
  case $1 in 3.10 | 3.11 | 3.12) ;; *) return 1 ;; esac
}

# Sets base and base_version.
find_python() {
  local wanted name without=""
  if [ -n "$base" ]; then
    check_venv_module
    return
  fi
  for wanted in 3.11 3.12 3.10; do
    for name in python3 "python$wanted"; do
      [ "$(python_version "$name")" = "$wanted" ] || continue
      base=$name base_version=$wanted
      if has_venv_module; then return; fi
      without=$wanted
    done
  done
  [ -z "$without" ] || check_venv_module
  name=$(python_version python3)
  die "no Python 3.10, 3.11 or 3.12 found (python3 is ${name:-missing}): install one, e.g." \
    "'apt-get install python3.11 python3.11-venv python3.11-dev', 'uv python install 3.11' or" \
    "'conda create -n posenc python=3.11', or name one with --python"
}

has_venv_module() {
  "$base" -c 'import ensurepip, venv' </dev/null 2>/dev/null
}

check_venv_module() {
  has_venv_module || die "$base has no venv or no ensurepip module and cannot make an" \
    "environment: 'apt-get install python$base_version-venv', or name another with --python"
}

# --- which environment ---

choose_environment() {
  local active
  if [ -z "$venv$python_option$torch_option" ]; then
    for active in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
      [ -n "$active" ] || continue
      set_environment "$active"
      if is_complete || "$python" -c 'import fairseq' </dev/null >/dev/null 2>&1; then return; fi
    done
  fi
  set_environment "${venv:-$root/.venv}"
}

set_environment() {
  environment=$1
  if [ -d "$1" ]; then environment=$(cd -P "$1" && pwd); fi
  case $environment in /*) ;; *) environment=$PWD/$environment ;; esac
  state=$environment/.fairseq_posenc
  python=$environment/bin/python
  # packages of an environment that this script made may be replaced, those of the user's not
  owned=""
  if [ -f "$state/owned" ]; then owned=yes; fi
}

# Makes the folder for this script's notes, in an environment of its own with the mark "owned".
claim_environment() {
  if [ -z "$owned" ] && [ -z "$(python_version "$python")" ]; then
    [ -z "$(find "$environment" -mindepth 1 -maxdepth 1 ! -name .fairseq_posenc 2>/dev/null)" ] ||
      die "$environment is no working Python environment: remove it, or name another (--venv)"
    find_python
    mkdir -p "$state" || die "cannot write to $environment: name another one (--venv)"
    set_environment "$environment"
    echo "$environment" >"$state/owned.part"
    mv "$state/owned.part" "$state/owned"
    set_environment "$environment"
  fi
  mkdir -p "$state" || die "cannot write to $environment: name another one (--venv)"
  [ -z "$owned" ] || [ "$(cat "$state/owned")" = "$environment" ] ||
    die "$environment was made as $(cat "$state/owned") and cannot be moved: remove it, run again"
}

take_lock() {
  command -v flock >/dev/null || return 0
  exec 9>"$state/lock"
  if flock -n 9; then return; fi
  step "waiting for another set-up of $environment"
  flock 9
}

# --- is there anything to do? ---

fingerprint() {
  {
    printf '%s\n' "$root" "$environment"
    cat "$here"/setup*.sh "$here/environment.py" "$here"/constraints*.txt "$root/setup.py" \
      "$root/pyproject.toml" "$root/fairseq_posenc/version.py"
  } | cksum
}

# The stamp is written last: fingerprint, version of torch, "-" and the extras.
is_complete() {
  local hash torch have extra
  [ -x "$python" ] && [ -f "$state/stamp" ] || return 1
  { read -r hash && read -r torch && read -r have; } <"$state/stamp" || return 1
  [ "$hash" = "$(fingerprint)" ] || return 1
  case $torch_option in "" | "$torch" | "${torch%%+*}") ;; *) return 1 ;; esac
  for extra in $extras; do
    case " $have " in *" $extra "*) ;; *) return 1 ;; esac
  done
  [ -z "$base_version" ] || [ "$(python_version "$python")" = "$base_version" ]
}

write_stamp() {
  printf '%s\n' "$(fingerprint)" "$(ask version torch)" "-$extras" >"$state/stamp.part"
  mv "$state/stamp.part" "$state/stamp"
}

# What was asked for earlier stays installed when something changes.
keep_extras() {
  local extra
  for extra in $(sed -n '3s/^-//p' "$state/stamp"); do
    case " $extras " in *" $extra "*) ;; *) extras="$extras $extra" ;; esac
  done
}

set_up() {
  claim_environment
  take_lock
  if is_complete; then return; fi
  if [ -f "$state/stamp" ]; then
    keep_extras
    rm "$state/stamp"
  fi
  install_everything
  write_stamp
  step "done: source '$environment/bin/activate'"
}

parse_options "$@"
check_options
# these would send packages elsewhere than into the environment
unset PIP_USER PIP_TARGET PIP_PREFIX
if [ -n "$print_bin" ]; then exec 3>&1 1>&2; else exec 3>/dev/null; fi
choose_environment
if is_complete; then
  [ -n "$print_bin" ] || echo "setup: $environment is complete"
else
  set_up
fi
echo "$environment/bin" >&3
