// SPDX-License-Identifier: Apache-2.0
//
// What the calls of commlens.h cost in a program that links libcommlens-api and runs without the profiler: nanoseconds
// for one call, or for what the row says, beyond those of the loop around it.
//
// A round times the empty loop and the row in turns, in short blocks of which the fastest count, because whatever else
// the machine does only adds time.  Printed are the median of the differences within rounds, quartiles and extremes.
#include <commlens/commlens.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace {

constexpr long repeats = 100'000;
constexpr int blocks = 9, rounds = 101;

// The compiler must not see through the loop, nor count it out.
inline void barrier() { asm volatile("" ::: "memory"); }

template <typename Body>
[[gnu::noinline]] double ns_of(Body body) {
  const auto start = std::chrono::steady_clock::now();
#pragma GCC unroll 8  // where the loop lies in memory matters less
  for (long i = 0; i < repeats; ++i) {
    body();
    barrier();
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / repeats;
}

using Samples = std::array<double, rounds>;

void print(const char* row, int calls, Samples& ns) {
  std::sort(ns.begin(), ns.end());
  const auto at = [&](double share) { return ns[static_cast<int>(share * (rounds - 1))] / calls; };
  std::printf("%-36s %6.2f ns   quartiles %.2f .. %.2f   all %.2f .. %.2f\n", row, at(0.5), at(0.25), at(0.75), at(0),
              at(1));
}

template <typename Body>
void measure(const char* row, int calls, Body body) {
  Samples added;
  for (double& ns : added) {
    double alone = ns_of([] {}), with = ns_of(body);
    for (int block = 1; block < blocks; ++block) {
      alone = std::min(alone, ns_of([] {}));
      with = std::min(with, ns_of(body));
    }
    ns = with - alone;
  }
  print(row, calls, added);
}

}  // namespace

extern "C" void commlens_begin_f_(const char* name, std::size_t length);
extern "C" void commlens_end_f_(const char* name, std::size_t length);

int main() {
  const commlens::metric residual("residual", "1");
  const commlens_region_t handle = commlens_region("solve");
  Samples loop;
  for (double& ns : loop) ns = ns_of([] {});
  print("the loop without a call", 1, loop);
  measure("commlens_begin, _end", 2, [] {
    commlens_begin("solve");
    commlens_end("solve");
  });
  measure("commlens_begin_region, _end_region", 2, [=] {
    commlens_begin_region(handle);
    commlens_end_region(handle);
  });
  measure("commlens_loop_iteration", 1, [] { commlens_loop_iteration(); });
  measure("commlens_record", 1, [=] { residual.record(1.0); });
  measure("commlens_active", 1, [] { commlens_active(); });
  measure("COMMLENS_REGION, C++", 1, [] { COMMLENS_REGION("solve"); });
  measure("commlens::region by name, C++", 1, [] { commlens::region here("solve"); });
  measure("commlens_begin_f, _end_f, Fortran", 2, [] {
    commlens_begin_f_("solve", 5);
    commlens_end_f_("solve", 5);
  });
}
