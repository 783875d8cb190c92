# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The conda recipe. No channel is at hand: rattler-build renders the recipe as it is, and builds it with Debian's compiler
# and Python in the place of conda's. Sourced by tools/packages.sh.
prepare() {
  root_with "$1" trixie "${smoke_packages[@]}" cmake make python3-venv python3-click python3-numpy python3-rich \
    ca-certificates zstd
  as_user "$1" bash -euxc 'python3 -m venv tools && tools/bin/pip install --no-input py-rattler-build==0.73.0 pyyaml==6.0.3'
}

build() {
  local root=$ROOTS/$1
  install -D "dist/$archive" "$root/dist/$archive"
  cp dist/recipes/conda/{recipe,variants}.yaml tools/packages/conda_build.py "$root/home/user"
  to_user "$1"
  as_user "$1" tools/bin/python conda_build.py recipe.yaml built && rm -rf dist/conda && mkdir dist/conda &&
    cp "$root"/home/user/built/*/commlens-*.conda dist/conda
}

check() {
  local root=$ROOTS/$1
  # A package is a zip file with an archive of the files.
  # shellcheck disable=SC2016  # expands inside
  as_user "$1" bash -euxc '
    mkdir prefix && cd prefix && python3 -m zipfile -e ../built/*/commlens-*.conda . && tar xf pkg-*.tar.zst
  '
  smoke "$1" PATH=/home/user/prefix/bin:/usr/local/bin:/usr/bin:/bin PYTHONPATH=/home/user/prefix/lib/python/site-packages
  facts "$1" "rendered as it is; built without conda's compiler and Python; Open MPI and MPICH profiled"
}
