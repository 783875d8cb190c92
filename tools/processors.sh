#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds for other processors and runs tests there, each instruction translated by QEMU: as root, on Debian with Linux 6.7
# or later.
#   tools/processors.sh unit_in_machine  the unit tests for aarch64, on Linux with pages of 4 KiB and of 64 KiB
#   tools/processors.sh mpi [NAME...]    tests with Debian's Open MPI and MPICH for aarch64, with pages of 64 KiB:
#                                        tests/mpi/test_NAME.py
#   tools/processors.sh wheel            the wheel for aarch64, installed with pip, and commlens self-test
#   tools/processors.sh single PROCESSOR the unit tests for ppc64le, riscv64 or s390x, and commlens self-test with Debian's
#                                        Open MPI and MPICH: single programs on this machine's Linux (qemu-user)
#   tools/processors.sh portable         the unit tests and those with MPI on this machine, without assembly
#   tools/processors.sh page             docs/evidence/processors.md from the results of all these
#   tools/processors.sh all              all of it
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh

results=$PWD/build/processors
mkdir -p "$results"
failed=0

# The test files that exercise what differs between processors, and Listing 1 of the paper.
mpi_tests=(listing1 languages callsites requests regions call_paths kills faults)
# The page counts the tests of a program by its last line.
unit_tests=(ctest --exclude-regex check_hot --output-on-failure --no-tests=error --timeout 1800
  --test-output-size-passed 1000000)

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
    step cpu "configure $processor" cmake -S . -B "build/$processor" "${options[@]}"
  step cpu "compile $processor: $*" cmake --build "build/$processor" --parallel "$(nproc)" --target "$@"
}

# in_machine LABEL PAGE COMMAND
in_machine() { step cpu "$1" tools/machine.sh "$2" "$results" "uname -r >$results/linux && $3" || failed=1; }

unit_in_machine() {
  tools/setup.sh build processors
  build aarch64 unit_tests
  rm -f "$results"/{unit,pages}-aarch64.xml
  in_machine "unit tests, aarch64, pages of 4 KiB" 4 \
    "${unit_tests[*]} --test-dir build/aarch64 --output-junit $results/unit-aarch64.xml"
  in_machine "unit tests, aarch64, pages of 64 KiB" 64 \
    "${unit_tests[*]} --test-dir build/aarch64 --output-junit $results/pages-aarch64.xml"
}

# Each test file has a result file of its own, so that a run that is stopped keeps the finished ones.  mpi4py comes from
# PyPI, as on x86-64; Debian's package supports Open MPI only.
mpi() {
  local mpi4py name
  (($#)) || set -- "${mpi_tests[@]}"
  tools/setup.sh build dev processors
  mpi4py=$(.venv/bin/python -c 'import importlib.metadata as m; print("mpi4py==" + m.version("mpi4py"))')
  for name in "$@"; do rm -f "$results/mpi-aarch64-$name.xml"; done
  rm -f "$results"/wheels/mpi4py-*.whl
  build aarch64 commlens_openmpi commlens_mpich commlens_abi commlens-api commlens-run commlens-arena
  step cpu "$mpi4py for aarch64" .venv/bin/python -m pip download --no-deps --only-binary :all: --dest "$results/wheels" \
    --platform manylinux2014_aarch64 --python-version "$(/usr/bin/python3 -c 'import platform as p; print(p.python_version())')" \
    "$mpi4py" || failed=1
  in_machine "tests with MPI, aarch64, pages of 64 KiB: an hour" 64 "
    python3 -m venv --system-site-packages /tmp/venv &&
      /tmp/venv/bin/pip install --no-index $results/wheels/mpi4py-*.whl || exit 1
    export PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 PATH=$PWD/build/aarch64/bin:\$PATH
    export COMMLENS_TEST_BUILD=$PWD/build/aarch64 COMMLENS_TEST_PATIENCE=10
    failed=0
    for name in $*; do
      /tmp/venv/bin/python -m pytest -v --no-header -p no:cacheprovider --junitxml=$results/mpi-aarch64-\$name.xml \\
        tests/mpi/test_\$name.py || failed=1
    done
    exit \$failed"
}

# The wheel is checked where it is installed, with each MPI library, by the command that users have for it.
wheel() {
  tools/setup.sh build processors
  rm -f "$results/self-test-aarch64.txt"
  WHEELS=$results/wheels step cpu "wheel for aarch64" tools/wheels.sh aarch64 || { failed=1 && return; }
  in_machine "commlens self-test with the wheel, aarch64" 64 "
    set -e
    python3 -m venv --system-site-packages /tmp/installed
    /tmp/installed/bin/pip install --no-index $results/wheels/commlens-*_aarch64.whl
    code=0
    for mpi in openmpi mpich; do
      MPICC=mpicc.\$mpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
        /tmp/installed/bin/commlens self-test -- mpirun.\$mpi -n 4 || code=1
    done
    exit \$code"
  cp "$LOGS/cpu-commlens-self-test-with-the-wheel-aarch64.log" "$results/self-test-aarch64.txt"
}

# single PROCESSOR.  Debian has packages for riscv64 from Debian 13 on, which also runs what is compiled on Debian 12.
single() {
  local processor=$1 root release=bookworm
  [ "$processor" != riscv64 ] || release=trixie
  root=$(realpath -m "${EMULATED_FOLDER:-build/emulated}")/$processor
  rm -f "$results/unit-$processor.xml" "$results/self-test-$processor.txt"
  tools/setup.sh build processors
  build "$processor" all unit_tests
  QEMU_LD_PREFIX=/usr/$(triple "$processor") step cpu "unit tests, $processor" \
    tools/emulated.sh "${unit_tests[@]}" --test-dir "build/$processor" --output-junit "$results/unit-$processor.xml" ||
    failed=1
  mkdir -p "${root%/*}"
  [ -e "$root/commlens-has" ] || step cpu "Debian's packages for $processor" debian "$processor" "$release" "$root"
  EMULATED_ROOT=$root step cpu "commlens self-test, $processor" tools/emulated.sh bash -c "
    set -e
    export PATH=$PWD/build/$processor/bin:\$PATH PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export UCX_TLS=self,posix,cma  # the emulator does not answer all that UCX asks about network interfaces
    code=0
    for mpi in openmpi mpich; do MPICC=mpicc.\$mpi python3 -m commlens self-test -- mpirun.\$mpi -n 2 || code=1; done
    exit \$code" || failed=1
  cp "$LOGS/cpu-commlens-self-test-$processor.log" "$results/self-test-$processor.txt"
}

debian() {
  local packages=libopenmpi-dev,openmpi-bin,libmpich-dev,mpich,gcc,python3-click,python3-numpy,python3-rich
  rm -rf "$3"
  tools/emulated.sh mmdebstrap --mode=root "--arch=${1/ppc64le/ppc64el}" --variant=apt "--include=$packages" "$2" "$3" \
    "deb http://deb.debian.org/debian $2 main" &&
    touch "$3/commlens-has"
}

# Without assembly there are no call paths.
portable() {
  local files=() name
  tools/setup.sh build dev mpi test
  [ -e build/portable/CMakeCache.txt ] || step cpu "configure portable" \
    cmake -S . -B build/portable -DCMAKE_BUILD_TYPE=Release -DCOMMLENS_PORTABLE=ON
  step cpu "compile portable" cmake --build build/portable --parallel "$(nproc)" --target all unit_tests
  rm -f "$results"/*-portable*.xml
  step cpu "unit tests, portable" "${unit_tests[@]}" --test-dir build/portable \
    --output-junit "$results/unit-portable.xml" || failed=1
  for name in "${mpi_tests[@]}"; do [ "$name" = call_paths ] || files+=("tests/mpi/test_$name.py"); done
  step cpu "tests with MPI, portable" env PYTHONPATH="$PWD/python" COMMLENS_TEST_BUILD="$PWD/build/portable" \
    .venv/bin/python -m pytest --quiet --no-header -p no:cacheprovider --junitxml="$results/mpi-portable-all.xml" \
    "${files[@]}" || failed=1
}

page() { python3 tools/processors_page.py "$results" docs/evidence/processors.md; }

all() {
  local processor
  rm -f "$results"/{*.xml,*.txt,linux}
  unit_in_machine
  mpi
  wheel
  for processor in riscv64 ppc64le s390x; do single "$processor"; done
  portable
  page
}

"$@"
exit $failed
