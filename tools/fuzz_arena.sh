#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the reader and the merge of arenas with libFuzzer and the address and undefined behaviour sanitizers
# (docs/fuzzing.md):
#
#     tools/fuzz_arena.sh [SECONDS]
#
# Starts from fuzz/arena/corpus.  The results are in build/fuzz-arena/: the grown corpus in corpus/, and each failing input
# in crash-*, oom-* or timeout-*.  To repeat one: build/fuzz-arena/fuzz FILE.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh fuzz

out=build/fuzz-arena
mkdir -p "$out/objects" "$out/corpus"
cc=${CLANG:-clang}
has() { command -v "$1" >/dev/null; }
launcher=$(has ccache && echo ccache || true)
cxx=${cc/clang/clang++}
flags=(-g -O1 -fno-omit-frame-pointer -I. -fvisibility=hidden -ftls-model=initial-exec)
sanitize=(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)

compile() {
  local source object
  rm -f "$out"/objects/*.o
  for source in core/{base,hot,arena,process,state,job,profile,collect,out,recover}/*.cpp fuzz/arena/*.cpp; do
    object=$out/objects/${source//\//_}.o
    echo "$launcher $cxx -std=c++17 ${flags[*]} ${sanitize[*]} -c $source -o $object"
  done | xargs -P "${JOBS:-$(nproc)}" -d '\n' -n 1 sh -c || return
  # SQLite is not under test: no sanitizers.
  $launcher "$cc" -O2 -w -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_DQS=0 -DSQLITE_TEMP_STORE=3 \
    -c third_party/sqlite/sqlite3.c -o "$out/objects/sqlite3.o" || return
  "$cxx" -fsanitize=fuzzer,address,undefined -o "$out/fuzz" "$out"/objects/*.o -ldl -lpthread
}

step fuzz "compile $out/fuzz" compile
cd "$out"
# Ends at the first failing input.  An allocation of more than 256 MiB is a failure.
exec ./fuzz -max_total_time="${1:-60}" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 -max_len=16384 \
  -use_value_profile=1 -print_final_stats=1 corpus ../../fuzz/arena/corpus
