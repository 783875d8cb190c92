#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds for other processors and runs tests there, in emulation (qemu-user): as root, on Linux 6.7 or later.
#   tools/processors.sh unit PROCESSOR   the unit tests, built with Debian's cross compilers
#   tools/processors.sh mpi aarch64      tests with Debian's Open MPI and MPICH for aarch64, in a root folder of their own
#   tools/processors.sh portable         the unit tests and those with MPI on this machine, without assembly
#   tools/processors.sh page             docs/evidence/processors.md from the results of all these
#   tools/processors.sh all              all of it
# PROCESSOR: aarch64, ppc64le, riscv64 or s390x.  EMULATED_FOLDER is where root folders are kept: by default
# build/emulated.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh

results=$PWD/build/processors
folder=${EMULATED_FOLDER:-$PWD/build/emulated}
mkdir -p "$results" "$folder"
failed=0

# The test files that exercise what differs between processors, and Listing 1 of the paper.
mpi_tests=(listing1 languages callsites requests faults regions call_paths kills)
packages=libopenmpi-dev,openmpi-bin,libmpich-dev,mpich,gcc,g++,gfortran,python3-pytest,python3-click,python3-rich
packages+=,python3-numpy,python3-mpi4py,procps,lammps

triple() { echo "${1/ppc64le/powerpc64le}-linux-gnu"; }

build() {
  local processor=$1
  shift
  local options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/cross.cmake"
    "-DCOMMLENS_PROCESSOR=$processor")
  if command -v ninja >/dev/null; then options+=(-G Ninja); fi
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  [ -e "build/$processor/CMakeCache.txt" ] ||
    step processors "configure $processor" cmake -S . -B "build/$processor" "${options[@]}"
  step processors "compile $processor: $*" cmake --build "build/$processor" --parallel "$(nproc)" --target "$@"
}

unit() {
  local processor=$1
  tools/setup.sh build processors
  build "$processor" unit_tests
  local prefix
  prefix=/usr/$(triple "$processor")
  QEMU_LD_PREFIX=$prefix step processors "unit tests, $processor" tools/emulated.sh \
    ctest --test-dir "build/$processor" --exclude-regex check_hot --output-on-failure --no-tests=error --timeout 1800 \
    --output-junit "$results/unit-$processor.xml" || failed=1
  if [ "$processor" = aarch64 ]; then
    QEMU_LD_PREFIX=$prefix EMULATED_PAGE=65536 step processors "unit tests, $processor, pages of 64 KiB" \
      tools/emulated.sh ctest --test-dir "build/$processor" --tests-regex '^(base|arena|job|state)$' --timeout 1800 \
      --output-on-failure --no-tests=error --output-junit "$results/pages-$processor.xml" || failed=1
  fi
}

root_folder() {
  [ -e "$folder/aarch64/commlens-has" ] && return
  rm -rf "$folder/aarch64"
  step processors "root folder with Debian's packages for aarch64" tools/emulated.sh mmdebstrap --mode=root \
    --arch=arm64 --variant=apt "--include=$packages" bookworm "$folder/aarch64" &&
    touch "$folder/aarch64/commlens-has"
}

mpi() {
  local processor=$1 files=() name
  tools/setup.sh build processors
  build "$processor" commlens_openmpi commlens_mpich commlens_abi commlens-api commlens-run commlens-arena
  root_folder
  for name in "${mpi_tests[@]}"; do files+=("tests/mpi/test_$name.py"); done
  say processors "tests with MPI, $processor: half an hour and more"
  EMULATED_ROOT=$folder/$processor tools/emulated.sh env PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1 \
    COMMLENS_TEST_BUILD="$PWD/build/$processor" COMMLENS_TEST_PATIENCE=10 \
    python3 -m pytest --quiet --no-header -p no:cacheprovider --junitxml="$results/mpi-$processor.xml" \
    "${MPI_TESTS[@]:-${files[@]}}" </dev/null || failed=1
}

# Without assembly there are no call paths.
portable() {
  local files=() name
  tools/setup.sh build dev mpi test
  [ -e build/portable/CMakeCache.txt ] || step processors "configure portable" \
    cmake -S . -B build/portable -DCMAKE_BUILD_TYPE=Release -DCOMMLENS_PORTABLE=ON
  step processors "compile portable" cmake --build build/portable --parallel "$(nproc)" --target all unit_tests
  step processors "unit tests, portable" ctest --test-dir build/portable --exclude-regex check_hot --output-on-failure \
    --no-tests=error --timeout 600 --output-junit "$results/unit-portable.xml" || failed=1
  for name in "${mpi_tests[@]}"; do [ "$name" = call_paths ] || files+=("tests/mpi/test_$name.py"); done
  step processors "tests with MPI, portable" env PYTHONPATH="$PWD/python" COMMLENS_TEST_BUILD="$PWD/build/portable" \
    .venv/bin/python -m pytest --quiet --no-header -p no:cacheprovider --junitxml="$results/mpi-portable.xml" \
    "${files[@]}" || failed=1
}

page() { python3 tools/processors_page.py "$results" docs/evidence/processors.md; }

all() {
  local processor
  for processor in aarch64 riscv64 ppc64le s390x; do unit "$processor"; done
  mpi aarch64
  portable
  page
}

"$@"
exit $failed
