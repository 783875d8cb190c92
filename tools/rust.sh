#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests programs in Rust with rsmpi.  Needs cargo; takes the crates from crates.io in the versions of tests/rust/Cargo.lock,
# and libclang, with which they read mpi.h, from PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build dev mpi
command -v cargo >/dev/null || { say rust "cargo is not installed: https://rustup.rs"; exit 1; }
tools/build.sh release

libclang() {
  [ -x build/rust/venv/bin/python ] || python3 -m venv build/rust/venv
  build/rust/venv/bin/python -m pip install --disable-pip-version-check libclang==18.1.1
}

mkdir -p build/rust
step rust "libclang" libclang
LIBCLANG_PATH=$(echo "$PWD"/build/rust/venv/lib/python3*/site-packages/clang/native)
# Headers of the compiler, which the package lacks.
BINDGEN_EXTRA_CLANG_ARGS=-I$(gcc -print-file-name=include)
export LIBCLANG_PATH BINDGEN_EXTRA_CLANG_ARGS
.venv/bin/python -m pytest -p no:cacheprovider tests/rust </dev/null
