#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all tests; with "quick" those that take seconds, with "coverage" those with MPI, with "all" also the cases that
# each MPI library leaves to the other.  Continues after a failure; the summary lists the failures.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
usage "$@"
. tools/openmpi.sh

results=$PWD/build/results
evidence=$results/evidence
rm -rf "$results"
mkdir -p "$results"
cases=() # options that choose cases of the tests with MPI
failed=()
fail() { failed+=("$@"); }
# Tests run in parallel.  An MPI test keeps half a processor busy, because it often waits for its launcher.
workers=$(nproc)
((workers <= 8)) || workers=8
mpi_workers=$((workers * 2))
# Containers often forbid Python to keep what it has compiled; tests start it thousands of times.
unset PYTHONDONTWRITEBYTECODE

build() {
  tools/build.sh "$@" || { fail "build, ${*: -1}"; return 1; }
}

# unit_tests PRESET TARGET [NAMES]: builds the target and runs the tests whose names match, or all.
unit_tests() {
  build --target "$2" "$1" || return 0
  step test "unit tests, $1" ctest --test-dir "build/$1" --parallel "$(nproc)" --tests-regex "${3:-.}" \
    --output-on-failure --no-tests=error --output-junit "$results/unit-$1.xml" || fail "unit tests, $1"
}

# python_tests NAME ARGUMENTS: runs pytest with these arguments; the results are called NAME.
python_tests() {
  local name=$1
  shift
  say test "$name"
  .venv/bin/python -m pytest --quiet --no-header -p no:cacheprovider --color=auto \
    --numprocesses "$workers" --dist worksteal \
    --junitxml="$results/$name.xml" "$@" </dev/null || fail "$name"
}

everything() {
  tools/setup.sh build dev demo mpi test
  build release || return 0 # all other steps would only repeat this failure
  tools/lint.sh || fail lint
  unit_tests debug unit_tests
  unit_tests tsan unit_tests
  # What runs in every call is tested as it is optimised, too. For the other rooms that would only repeat the above.
  unit_tests release hot_test '^(hot|check_hot.*)$'
  python_tests reader tests/python tests/docs "${cases[@]}"
  python_tests gen tests/gen
  python_tests proof tests/proof
  python_tests build tests/build
  python_tests api tests/api
  with_mpi
  step test "docs/evidence/coverage.md says what was tested" \
    .venv/bin/python tests/mpi/evidence.py verify "$evidence" ||
    fail "docs/evidence/coverage.md" "$(.venv/bin/python tests/mpi/evidence.py verify "$evidence" | head -n 3 || true)"
}

with_mpi() {
  tools/pythons.sh || fail "versions of Python"
  export COMMLENS_TEST_EVIDENCE=$evidence
  workers=$mpi_workers python_tests mpi tests/mpi "${cases[@]}"
  other_mpis
}

# Runs the tests with MPI and writes into docs/evidence/coverage.md which procedures they use.
coverage() {
  tools/setup.sh build dev demo mpi test
  build release || return 0
  with_mpi
  .venv/bin/python tests/mpi/evidence.py write "$evidence"
  .venv/bin/python gen/coverage.py
}

# Runs the tests whose results may differ between releases and interfaces, with the MPI libraries from PyPI.  Left out are
# - Fortran, because these libraries have no compiler wrappers for it,
# - cases with 16 or 64 ranks and one of 20,000 communicators, which take long and do not depend on the release,
# - of test_faults.py, everything but the test with another MPI library,
# - for Intel MPI, test_communicators.py, of which it fails two tests without commlens, too, and test_hosts.py, whose
#   remote shell does not suffice for its launcher.
other_mpis() {
  tools/mpis.sh || { fail "MPI libraries from PyPI"; return 0; }
  local files=() name others=openmpi5,mpich5,mpich5-abi
  [ "$(uname -m)" != x86_64 ] || others+=,intel,intel-abi
  for name in interfaces versions requests languages listing1 faults every symbols sessions communicators hosts pcontrol \
    place tune_mpich tune_intel self_test; do
    files+=("tests/mpi/test_$name.py")
  done
  COMMLENS_TEST_MPI=$others workers=$mpi_workers python_tests mpi-others "${files[@]}" \
    -k 'not 16 and not 64 and not twenty_thousand and not from_fortran and not ((test_communicators.py or test_hosts.py) and intel) and (another_mpi or not test_faults.py)'
}

all() {
  cases=(--every-case)
  everything
}

# Leaves out the long tests, and all cases of a reader's test but the first.
quick() {
  tools/setup.sh build dev test
  build release || return 0
  unit_tests release unit_tests
  python_tests reader tests/python tests/docs --first-cases -m "not long"
  python_tests gen tests/gen
  python_tests proof tests/proof -m "not long"
}

"${1:-everything}"
echo "$SECONDS" >"$results/seconds"
.venv/bin/python tools/summary.py "$results" "${failed[@]}"
