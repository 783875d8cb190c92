#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python packages, and again in another folder; compares them, installs them into empty environments with the
# MPI libraries of PyPI, and profiles jobs there.  tools/processors.sh wheel profiles jobs with the one for
# aarch64.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/wheel_tools.sh
processors=(x86_64 aarch64)
tools/setup.sh build dev
tools/wheels.sh "${processors[@]}"
wheel_tools

# In a folder whose path has another length, without any object of the first build.
again() {
  local copy=build/wheels/another-folder
  rm -rf "$copy"
  mkdir "$copy"
  git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory "$copy" || return
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) CCACHE_DISABLE=1 "$copy/tools/wheels.sh" "${processors[@]}" &&
    (cd dist && sha256sum commlens-*.{whl,tar.gz}) | (cd "$copy/dist" && sha256sum --check)
}

step wheels "the same bytes from another folder" again
.venv/bin/python -m pytest -p no:cacheprovider tests/wheels </dev/null
