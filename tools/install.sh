#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs below PREFIX: the library, commlens-run, the headers, and the reader in a Python environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
prefix=${1:?usage: tools/install.sh PREFIX}
# Only cmake --install would obey it, so that the rest would go to the prefix itself.
[ -z "${DESTDIR:-}" ] || {
  say install "DESTDIR is not for make install: docs/guide/packages.md has what a package does, under 'Without a recipe'"
  exit 1
}
tools/setup.sh build reader
tools/build.sh release
umask 022 # others use it, too

reader() {
  .venv/bin/python -m venv "$prefix/lib/commlens/python" &&
    SKBUILD_WHEEL_CMAKE=false "$prefix/lib/commlens/python/bin/pip" install --disable-pip-version-check --no-input . &&
    mkdir -p "$prefix/bin" && ln -sfn "../lib/commlens/python/bin/commlens" "$prefix/bin/commlens"
}
# Paths below the prefix, for tools/uninstall.sh; what is not there does not belong to this installation.  Those of a
# version that was installed before stay in the list.
manifest() {
  local folder list=$prefix/lib/commlens/manifest
  folder=$(realpath "$prefix")
  {
    printf '%s\n' bin/commlens lib/commlens/python share/commlens/python # with what Python has compiled
    awk -v "folder=$folder/" 'index($0, folder) == 1 { print substr($0, length(folder) + 1) }' \
      build/release/install_manifest.txt
    cat "$list" 2>/dev/null || true
  } | sort -u >"$list.new" && mv "$list.new" "$list"
}
step install "library and commlens-run below $prefix" cmake --install build/release --prefix "$(realpath -m "$prefix")"
step install "list of the files, for make uninstall" manifest
step install "commlens" reader
