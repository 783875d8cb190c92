#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/check_hot.sh refuses what it is there to refuse.   check_hot_test.sh COMPILER
set -euo pipefail
compiler=$1
check=$(cd "$(dirname "$0")/../../.." && pwd)/tools/check_hot.sh
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
failures=0

# refused SYMBOL SOURCE: an object of this source is refused because of this symbol, and both are named.
refused() {
  local object=$place/hot.o said code=0
  "$compiler" -w -std=c++17 -O2 -fPIC -x c++ -c -o "$object" - <<<"$2"
  said=$("$check" "$object" 2>&1) || code=$?
  if [[ $code != 1 || $said != *"$object asks for $1"* ]]; then
    echo "check_hot said $code, '$said' of an object with $1" >&2
    failures=$((failures + 1))
  fi
}

for call in malloc free calloc realloc mmap munmap read write open pthread_mutex_lock pthread_self sched_yield getenv \
  MPI_Send PMPI_Send PMPI_Comm_size dlsym; do
  refused "$call" "extern \"C\" void $call(); void hot() { $call(); }"
done
refused 'operator new' '#include <vector>
void hot(std::vector<int>& v) { v.push_back(1); }'
refused pthread_mutex_lock '#include <mutex>
std::mutex m; void hot() { std::lock_guard<std::mutex> lock(m); }'
refused '__cxa_guard_acquire' 'struct S { S(); }; S& hot() { static S s; return s; }'
refused '__tls_get_addr' 'extern thread_local int t; int hot() { return t; }'
refused 'commlens::map_memory' 'namespace commlens { void map_memory(unsigned long); } void hot() { commlens::map_memory(1); }'

code=0
"$check" "$place/missing.o" >/dev/null 2>&1 || code=$?
((code != 0)) || { echo "check_hot is content with an object that is not there" >&2 && failures=$((failures + 1)); }

"$compiler" -w -std=c++17 -O2 -fPIC -x c++ -c -o "$place/hot.o" - <<'SOURCE'
extern "C" int clock_gettime(int, void*);
namespace commlens { struct Thread; Thread* enter_thread() noexcept; }
void hot(void* t) { commlens::enter_thread(); clock_gettime(1, t); }
SOURCE
"$check" "$place/hot.o" >/dev/null || failures=$((failures + 1))
exit $((failures > 0))
