# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The definition for Apptainer, which no registry has: its sections run in an empty Debian, as Apptainer runs them.
# Sourced by tools/packages.sh.
section() { sed -n "/^%$1\$/,/^%/ { /^%/!p }" packaging/containers/commlens.def; }

prepare() { if [ -n "${ROOTS_CCACHE:-}" ]; then root_with "$1" bookworm; else new_root "$1" bookworm; fi; }

build() {
  local root=$ROOTS/$1
  grep -qx '    . /source' <(section files)
  mkdir "$root/source" && tar -xf "dist/$archive" --strip-components=1 -C "$root/source"
  section post >"$root/post.sh"
  in_root "$1" sh -eux /post.sh
  [ ! -e "$root/source" ]
}

check() {
  { section environment && section test; } >"$ROOTS/$1/test.sh"
  in_root "$1" sh -eux /test.sh
  section environment >"$ROOTS/$1/environment.sh"
  install -m 755 packaging/smoke.sh "$ROOTS/$1/usr/local/bin/commlens-smoke"
  as_user "$1" sh -euxc '. /environment.sh && exec commlens-smoke mpirun'
  facts "$1" "%post and %test run in an empty Debian 12; read: how apptainer calls them; Open MPI profiled"
}
