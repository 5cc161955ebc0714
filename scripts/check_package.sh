#!/usr/bin/env bash
# usage: bash scripts/check_package.sh [3.10] [3.11] [3.12] [3.13]
#
# Builds the package in runs/package and tries it as others get it: whether the sdist has every file,
# what the package index would show of README, the tests in the unpacked sdist (those of encodings
# run, all are collected), and the wheel with its fairseq and its tools in an empty environment of
# each Python (default: all four), where a small model is trained. That compiles fairseq, and may
# fetch some GB: five minutes each. Python 3.10 takes uv, as pip refuses what fairseq 0.12.2 asks for.
# Prints a line for each. Exits with 1 if one fails, or else with 3 if a Python is missing.
set -euo pipefail
CDPATH= cd -P "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/pythons.sh
source scripts/pythons.sh

folder=$PWD/runs/package
status=0

# check NAME COMMAND…: run it with its output in a log, and say how it ended.
check() {
  local name=$1 log=$folder/$1.log start=$SECONDS ended
  shift
  set +e
  (set -e; "$@") >"$log" 2>&1
  ended=$?
  set -e
  case $ended in
    0) echo "$name  passed  $((SECONDS - start)) s" ;;
    3) echo "$name  missing  $(tail -n 1 "$log")" && status=$((status == 1 ? 1 : 3)) ;;
    *) echo "$name  failed  $((SECONDS - start)) s  $log ends with" && tail -n 5 "$log" && status=1 ;;
  esac
}

build() {
  python -m venv "$folder/tools"
  "$folder/tools/bin/pip" install build twine 'readme_renderer[md]' uv
  # from a copy: a list of files that an earlier build left here would be taken for the present one
  mkdir "$folder/source" "$folder/sdist"
  git ls-files -z --cached --others --exclude-standard | sort -z >"$folder/files"
  tar --null -T "$folder/files" -cf - | tar -xf - -C "$folder/source"
  "$folder/tools/bin/python" -m build --outdir "$folder/dist" "$folder/source"
  tar -xzf "$folder"/dist/*.tar.gz -C "$folder/sdist" --strip-components 1
}

# As the package index does: Markdown to HTML. A link that leads neither outside nor within the page
# is broken there.
page() {
  "$folder/tools/bin/twine" check --strict "$folder"/dist/*
  unzip -p "$folder"/dist/*.whl '*.dist-info/METADATA' | sed '1,/^$/d' >"$folder/page.md"
  "$folder/tools/bin/python" -m readme_renderer "$folder/page.md" -o "$folder/page.html"
  ! grep -oE '(href|src)="[^"]*"' "$folder/page.html" | grep -vE '"(https://|#)'
}

sdist() {
  cd "$folder/sdist"
  xargs -0 ls -d <"$folder/files" >/dev/null
  python -m pytest -n 0 --collect-only
  python -m pytest -n 0 tests/encodings
}

wheel() { # version
  local python environment=$folder/env$1 package
  package=$(echo "$folder"/dist/*.whl)'[fairseq,tools]'
  python=$(find_python "$1") || { echo "there is no Python $1" && exit 3; }
  "$python" -m venv "$environment"
  if [ "$1" = 3.10 ]; then
    VIRTUAL_ENV=$environment "$folder/tools/bin/uv" pip install "$package"
  else
    "$environment/bin/pip" install "$package"
  fi
  PATH=$environment/bin:$PATH bash "$folder/sdist/tests/end_to_end/installed.sh" \
    "$folder/text" "$folder/work$1"
  # gigabytes
  rm -rf "$environment"
}

for version in "$@"; do
  case $version in
    --help | -h) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" && exit 0 ;;
    3.10 | 3.11 | 3.12 | 3.13) ;;
    *) echo "check_package.sh: error: unknown Python $version (see --help)" >&2 && exit 2 ;;
  esac
done
[ $# -gt 0 ] || set -- 3.10 3.11 3.12 3.13
bin=$(bash scripts/setup.sh --extra test --print-bin)
export PATH="$bin:$PATH" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
rm -rf "$folder"
mkdir -p "$folder"
check build build
check page page
check sdist sdist
python -m recipes.corpus --train 60 --valid 10 --test 10 --quiet --output "$folder/text"
for version in "$@"; do check "wheel_$version" wheel "$version"; done
exit "$status"
