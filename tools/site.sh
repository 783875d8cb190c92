#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a site of docs/, in build/site: open index.html.  Packages are kept in build/site-tools.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh dev
# The search is a worker, which browsers refuse for files; this script is a worker in a frame.
shim=iframe-worker@1.0.4
packages=$(sed -n 's/^site = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '",')

tools_of_site() {
  [ "$(cat build/site-tools/has 2>/dev/null)" = "$packages $shim" ] && return
  rm -rf build/site-tools
  .venv/bin/python -m venv build/site-tools &&
    # shellcheck disable=SC2086
    build/site-tools/bin/pip install --disable-pip-version-check --no-input --quiet $packages &&
    PATH=$PWD/.venv/bin:$PATH npm --prefix build/site-tools install --no-audit --no-fund --silent "$shim" &&
    echo "$packages $shim" >build/site-tools/has
}
step site "$packages" tools_of_site
step site "build/site/index.html" env NO_MKDOCS_2_WARNING=1 build/site-tools/bin/mkdocs build --quiet
