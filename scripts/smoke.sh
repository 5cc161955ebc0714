#!/usr/bin/env bash
# usage: bash scripts/smoke.sh [pytest's options]
#
# What scripts/test.sh has no time for: every recipe from its data to its table, with tiny models on
# generated data, every command of the documentation, and other tests that take a minute or more;
# then the site of the documentation. Offline but for the package index; about half an hour on 2
# cores. `--minutes N`: after N minutes no test is begun, and those left out are named.
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")

case ${1:-} in
  --help | -h) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" && exit ;;
esac
bash "$scripts/test.sh" --no-style -m slow --durations 40 "$@"
bash "$scripts/docs.sh"
