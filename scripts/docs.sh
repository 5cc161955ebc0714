#!/usr/bin/env bash
# usage: bash scripts/docs.sh [FOLDER]
#
# Builds the documentation as a site, FOLDER/site (runs/docs/site): open its index.html. The pages are
# those of docs/, README.md, the help of every command, and the docstrings of what Python imports. Any
# warning ends it. Installs Zensical in an environment of its own, FOLDER/venv.
set -euo pipefail
here=$PWD
CDPATH= cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
  -*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" && exit ;;
esac
folder=${1:-$PWD/runs/docs}
case $folder in /*) ;; *) folder=$here/$folder ;; esac
bin=$(bash scripts/setup.sh --print-bin)
mkdir -p "$folder"
if [ ! -x "$folder/venv/bin/zensical" ]; then
  "$bin/python" -m venv "$folder/venv"
  "$folder/venv/bin/pip" --quiet --disable-pip-version-check install 'zensical==0.0.73'
fi
rm -rf "$folder/pages" "$folder/site"
cp -r docs "$folder/pages"
mv "$folder/pages/mkdocs.yml" "$folder/mkdocs.yml"
"$bin/python" scripts/docs_pages.py "$folder/pages"
cd "$folder"
venv/bin/zensical build --clean --strict
