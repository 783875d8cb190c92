#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all static checks of the sources.  Runs them all, then fails if one has failed.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
usage "$@"
tools/setup.sh dev
tools/build.sh release   # clang-tidy needs the compile commands

# The analyzer follows paths through each function until it has seen max-nodes states. With its default, 225,000, two
# files with many wrappers take a third of the whole lint; so bounded it takes a third of the time.
# shellcheck disable=SC2317  # step calls it
tidy() {
  .venv/bin/python tools/tidy_commands.py build/release build/tidy || return
  find core -name '*.cpp' -print0 | xargs -0 -P "$(nproc)" -n 1 .venv/bin/clang-tidy --quiet -p build/tidy \
    --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=30000
}

# Each of these uses one processor only.
# shellcheck disable=SC2317  # called in the background
others() {
  local code=0
  tools/bundle.sh --check || code=1
  step lint "Python: mypy" .venv/bin/mypy || code=1
  for folder in tests/{api,build,gen,mpi,proof,rust,spark,wheels}; do # one by one: some files have the same name
    MYPYPATH=$folder step lint "Python: mypy $folder" .venv/bin/mypy "$folder" || code=1
  done
  tools/generate.sh --check || code=1
  step lint "files are where they belong" .venv/bin/python tools/check_tree.py || code=1
  step lint "includes and imports point one way" .venv/bin/python tools/check_rooms.py || code=1
  step lint "each type has one definition" .venv/bin/python tools/check_types.py || code=1
  step lint "files and functions are small" .venv/bin/python tools/check_sizes.py || code=1
  tools/format.sh --check || code=1
  step lint "Python: ruff" .venv/bin/ruff check . || code=1
  step lint "Python: output is escaped" .venv/bin/python tools/check_output.py python/commlens || code=1
  step lint "third_party unchanged" sha256sum --check third_party/SHA256SUMS || code=1
  return $code
}

export STEPS_BESIDE=1
code=0
others &
step lint "C++: clang-tidy" tidy || code=1
wait $! || code=1
exit $code
