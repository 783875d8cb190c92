#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs MPI tests with libcommlens.so and the test programs built with a sanitizer: tools/sanitize.sh [debug|tsan ...]
# debug: without optimisation, with the address and undefined behaviour sanitizers.
# tsan: the tests with threads.  A race planted in a copy of the sources shows that the sanitizer would detect one.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
usage "$@"
. tools/openmpi.sh
tools/setup.sh build dev mpi
tools/pythons.sh

(($#)) || set -- debug tsan
code=0
for preset in "$@"; do
  tools/build.sh "$preset"
  case $preset in
  tsan) tests=(tests/mpi/test_{communicators,corners,regions,requests,storm}.py tests/mpi/sanitizer/planted_race.py) ;;
  *) tests=(tests/mpi/test_{adopt,annotated,bytes,comm_random,communicators,corners,faults,pcontrol,python_paths,regions,requests,storm,ways_in}.py) ;;
  esac
  say test "$preset: ${tests[*]}"
  COMMLENS_TEST_BUILD=$PWD/build/$preset .venv/bin/python -m pytest --quiet --no-header -p no:cacheprovider \
    --every-case "${tests[@]}" </dev/null || code=1
done
exit $code
