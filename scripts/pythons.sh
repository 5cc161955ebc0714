# shellcheck shell=bash
# source scripts/pythons.sh: how scripts that try several Pythons find one.

# Not one that the package refuses (requires-python in pyproject.toml), such as Debian 12's 3.11.2.
is_python() { # program version
  [ "$("$1" -c 'import sys, tarfile; tarfile.data_filter; print("%d.%d" % sys.version_info[:2])' \
    2>/dev/null)" = "$2" ]
}

# Prints a Python of a version, such as 3.11: from the PATH, from pyenv or from uv.
find_python() { # version
  local candidate
  for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python \
    "$(uv python find "$1" 2>/dev/null)"; do
    if is_python "$candidate" "$1"; then echo "$candidate" && return; fi
  done
  return 1
}
