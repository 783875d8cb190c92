#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the profiles of one schema version: builds the library of a commit, runs record.c with it, and puts what it
# writes here as version<N>*.  Overwrites what lies there under these names.
#
#     tests/profiles/record.sh            # of HEAD
#     tests/profiles/record.sh COMMIT [SUFFIX]
#
# SUFFIX tells two recordings of one version apart: version2-first.db.  Needs Open MPI and a C++ compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."

commit=$(git rev-parse --verify "${1:-HEAD}^{commit}")
suffix=${2:+-$2}
here=$PWD/tests/profiles
# Profiles name the folder of the program: the same neutral one for all of them.  mkdir fails where somebody else has it.
room=/tmp/record
mkdir "$room"
trap 'git worktree remove --force "$room/source" 2>/dev/null || true; rm -rf "$room"' EXIT

git worktree add --quiet --detach "$room/source" "$commit"
version=$(sed -n 's/^version = \([0-9]*\).*/\1/p' "$room/source/spec/schema.toml")
build() {
  cmake -S "$room/source" -B "$room/build" -DCMAKE_BUILD_TYPE=Release -DCOMMLENS_TESTS=OFF &&
    cmake --build "$room/build" --parallel "$(nproc)" --target commlens_openmpi commlens-run
}
build >"$room/log" 2>&1 || { tail -n 40 "$room/log" >&2; exit 1; }
# -g0 and no build id: the executable is the same for all versions.
mpicc.openmpi -std=c11 -O1 -g0 -Wl,--build-id=none -o "$room/record" tests/profiles/record.c

# Only what MPI and the shell need: no option of ours, and nothing else of this machine that a profile might show.
launch() {
  (cd "$room" && env -i PATH=/usr/bin:/bin HOME="$room" LC_ALL=C.UTF-8 COMMLENS_CONFIG=/dev/null COMMLENS_QUIET=1 \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader \
    "$@" mpirun.openmpi -n 4 build/bin/commlens-run ./record data)
}

has_option() {
  grep -q "^\[$1\]" "$room/source/spec/options.toml"
}

# record NAME OPTION...: one run, under the names of this folder.
record() {
  local name=version$version$1 written
  shift
  launch COMMLENS_OUTPUT="$room/$name.db" "$@"
  written=("$room/$name".*)
  rm -rf "$here/$name.db" "$here/$name.commlens"
  cp -r "${written[0]}" "$here/"
  du -sb "$here/${written[0]##*/}" | sed "s|$PWD/||"
}

everything=()
if has_option COMMLENS_MATRIX; then everything=(COMMLENS_MATRIX=all COMMLENS_MATRIX_BY=both); fi
if has_option COMMLENS_THREADS; then everything+=(COMMLENS_THREADS=each); fi
if has_option COMMLENS_DATATYPES; then everything+=(COMMLENS_DATATYPES=1); fi
if has_option COMMLENS_COUNTERS; then everything+=(COMMLENS_COUNTERS=page-faults,context-switches); fi
record "$suffix" "${everything[@]}"
if has_option COMMLENS_AGGREGATORS; then record "$suffix-shards" COMMLENS_AGGREGATORS=2 "${everything[@]}"; fi
if has_option COMMLENS_DETAIL; then record "$suffix-summary" COMMLENS_DETAIL=summary; fi
