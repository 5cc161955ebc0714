# shellcheck shell=bash disable=SC2154
# What setup.sh does to the environment it has chosen. Sourced by it, for its variables:
# here, root, environment, state, python, owned, base, base_version, torch_option, extras.

# pins: the constraints file; fairseq: the release that goes with the environment's Python;
# torch: the requirement
version="" pins="" fairseq="" torch=""

die() {
  echo "setup: error: $*" >&2
  exit 1
}

step() {
  printf 'setup: [%3d s] %s\n' "$SECONDS" "$*"
}

pinned() { # project
  sed -n "s/^$1==//p" "$pins"
}

ask() { # question arguments...: see environment.py
  "$python" "$here/environment.py" "$@" </dev/null
}

pip_install() {
  "$python" -m pip --no-input --disable-pip-version-check install "$@" </dev/null \
    >"$state/pip.log" 2>&1
}

pip_failed() { # what
  ! grep -q 'No matching distribution found for torch==' "$state/pip.log" ||
    die "no package ${torch/==/ } for Python $version in the package index: choose another with" \
      "--torch (tested: $(pinned torch)); for CUDA builds (+cu...) add PyTorch's own index with" \
      "PIP_EXTRA_INDEX_URL"
  grep '^ *ERROR: ' "$state/pip.log" | tail -n 5 >&2 || tail -n 5 "$state/pip.log" >&2
  die "could not install $1; all that pip said: $state/pip.log"
}

make_environment() {
  if [ -n "$(python_version "$python")" ]; then return; fi
  find_python
  step "making $environment with Python $base_version"
  "$base" -m venv "$environment" </dev/null >"$state/venv.log" 2>&1 ||
    die "$base -m venv failed: $(tail -n 1 "$state/venv.log")"
  [ -n "$(python_version "$python")" ] ||
    die "$environment is no working Python environment: remove it, or name another (--venv)"
}

check_environment() {
  version=$(python_version "$python")
  [ "$version" = "${base_version:-$version}" ] ||
    die "$environment holds Python $version, not $base_version: name another one (--venv)"
  supported "$version" || [ -n "$(ask has fairseq)" ] ||
    die "$environment holds Python $version and no fairseq: name another one (--venv)"
  pins=$here/constraints.txt fairseq=fairseq-fixed
  if [ "$version" = 3.10 ]; then
    pins=$here/constraints-3.10.txt fairseq=fairseq
  fi
}

check_pip() {
  if [ -n "$(ask version pip)" ] && "$python" -m pip --version </dev/null >/dev/null 2>&1; then
    return
  fi
  "$python" -m ensurepip --default-pip </dev/null >"$state/pip.log" 2>&1 ||
    die "$environment has no pip: 'apt-get install python$version-venv', remove it, run again"
}

holds_fairseq() {
  [ -n "$(ask has fairseq)" ] || return 1
  # files without a record: our own installation was cut
  [ ! -f "$state/building" ] || [ -n "$(ask version "$fairseq")" ]
}

fairseq_is_ours() {
  [ "$(ask version "$fairseq")" = "$(pinned "$fairseq")" ]
}

choose_versions() { # projects of the user's that may change
  torch=$torch_option
  [ -n "$torch" ] || torch=$(ask version torch)
  torch=torch==${torch:-$(pinned torch)}
  if [ -n "$owned" ]; then
    # torch has a requirement of its own
    sed '/^torch==/d' "$pins" >"$state/constraints.txt"
  else
    ask installed torch "$@" >"$state/constraints.txt"
  fi
}

install_torch() {
  step "installing ${torch/==/ } and what builds fairseq"
  if [ "$version" = 3.10 ]; then
    pip_install "pip==$(pinned pip)" || pip_failed pip
  fi
  pip_install -c "$state/constraints.txt" "$torch" cython numpy 'setuptools<81' wheel ||
    pip_failed torch
}

install_fairseq() {
  local options="--no-build-isolation"
  if [ "$version" = 3.10 ]; then
    # where its build sees torch it compiles sources that the archive lacks
    options=""
  elif [ "${torch%%+*}" != "torch==$(pinned torch)" ]; then
    # a build in pip's cache may belong to another torch
    options="$options --no-cache-dir"
  fi
  step "installing $fairseq $(pinned "$fairseq"): compiling takes a minute or two"
  : >"$state/building"
  printf '[build_ext]\nparallel = %s\n' "$(getconf _NPROCESSORS_ONLN)" >"$state/build.cfg"
  hide_ninja
  # shellcheck disable=SC2086 # the options are words
  PIP_CONSTRAINT=$(ask uri "$pins") DIST_EXTRA_CONFIG=$state/build.cfg CFLAGS="-g0 ${CFLAGS:-}" \
    PATH=$state/bin:$PATH \
    pip_install --no-deps $options "$fairseq==$(pinned "$fairseq")" || fairseq_failed
  rm "$state/building"
}

# With ninja, torch compiles every extension from one build file, which those that are compiled at
# the same time overwrite; it does without one that does not work.
hide_ninja() {
  mkdir -p "$state/bin"
  printf '#!/bin/sh\nexit 1\n' >"$state/bin/ninja"
  chmod +x "$state/bin/ninja"
}

fairseq_failed() {
  command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
    die "fairseq is compiled here, and there is no C++ compiler: 'apt-get install g++'"
  "$python" -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' \
    2>/dev/null ||
    die "fairseq is compiled here, and Python.h is missing: 'apt-get install python$version-dev'"
  pip_failed fairseq
}

install_libraries() {
  step "installing libraries${extras:+, and for:$extras}"
  set -- "$torch" matplotlib numpy sacrebleu sacremoses scikit-learn scipy sentencepiece \
    subword-nmt tqdm
  if fairseq_is_ours; then
    # all that fairseq needs for text; its own list has torchaudio, which asks for another torch
    set -- "$@" bitarray cffi cython hydra-core omegaconf packaging regex tensorboardX
  fi
  case " $extras " in
    *" test "*) set -- "$@" ctranslate2 hypothesis mypy pytest pytest-cov pytest-xdist ruff ;;
  esac
  pip_install -c "$state/constraints.txt" "$@" || pip_failed "the libraries"
  # what it requires is for downloads, which nothing here does with it
  pip_install -c "$state/constraints.txt" --no-deps tokenizers || pip_failed "the libraries"
}

install_project() {
  step "installing the plugin and trying fairseq"
  # an environment of the user's may have no setuptools, or one that is too old
  pip_install --no-deps ${owned:+--no-build-isolation} -e "$root" || pip_failed "the plugin"
  "$python" -c 'import fairseq' </dev/null >"$state/import.log" 2>&1 ||
    die "fairseq in $environment cannot be imported: $(tail -n 1 "$state/import.log")"
}

install_everything() {
  local cut=""
  if [ -n "$owned" ]; then unset PYTHONPATH PYTHONHOME; fi
  if [ -f "$state/begun" ]; then cut=yes; else : >"$state/begun"; fi
  make_environment
  step "completing $environment"
  check_environment
  if [ -n "$cut" ]; then ask repair "$state/begun" >/dev/null; fi
  check_pip
  if holds_fairseq; then
    # a fairseq of the user's keeps the libraries that it came with
    fairseq_is_ours || owned=""
    choose_versions
  else
    choose_versions cython numpy setuptools wheel
    install_torch
    install_fairseq
  fi
  install_libraries
  install_project
  rm "$state/begun"
}
