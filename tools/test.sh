#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All tests, or with "quick" those that take seconds.  A failure does not stop the rest; the summary names it.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/openmpi.sh

results=$PWD/build/results
rm -rf "$results"
mkdir -p "$results"
failed=()

build() {
  tools/build.sh "$@" || { failed+=("build, ${*: -1}"); return 1; }
}

unit_tests() {
  step test "unit tests, $1" ctest --test-dir "build/$1" --parallel "$(nproc)" \
    --output-on-failure --no-tests=error --output-junit "$results/unit-$1.xml" || failed+=("unit tests, $1")
}

python_tests() {
  local name=$1
  shift
  say test "$name"
  .venv/bin/python -m pytest --quiet --no-header -p no:cacheprovider --color=auto \
    --junitxml="$results/$name.xml" "$@" </dev/null || failed+=("$name")
}

everything() {
  tools/setup.sh build dev demo mpi test
  build release || return 0 # what follows would only repeat this failure
  tools/lint.sh || failed+=(lint)
  unit_tests release
  for preset in asan ubsan tsan; do
    build --unit "$preset" && unit_tests "$preset"
  done
  python_tests reader tests/python tests/docs
  python_tests gen tests/gen
  python_tests proof tests/proof
  python_tests build tests/build
  COMMLENS_TEST_EVIDENCE=$results/evidence python_tests mpi tests/mpi
  step test "docs/coverage.md says what was tested" \
    .venv/bin/python tests/mpi/evidence.py verify "$results/evidence" || failed+=("docs/coverage.md")
  other_mpis
}

# What may differ between releases and interfaces, with the MPI libraries from PyPI.
other_mpis() {
  tools/mpis.sh || { failed+=("MPI libraries from PyPI"); return 0; }
  COMMLENS_TEST_MPI=openmpi5,mpich5,mpich5-abi,intel,intel-abi python_tests mpi-others \
    tests/mpi/test_interfaces.py tests/mpi/test_versions.py tests/mpi/test_requests.py tests/mpi/test_languages.py \
    tests/mpi/test_listing1.py tests/mpi/test_faults.py \
    -k 'not 16 and not 64 and not twenty_thousand and (interfaces or versions or requests or languages or listing1 or another_mpi)'
}

quick() {
  tools/setup.sh build dev
  build release || return 0
  unit_tests release
  python_tests reader tests/python tests/docs
  python_tests gen tests/gen
  python_tests proof tests/proof
}

"${1:-everything}"
.venv/bin/python tools/summary.py "$results" "${failed[@]}"
