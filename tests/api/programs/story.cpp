// SPDX-License-Identifier: Apache-2.0
// The story that every language tells, here in C++.
#include <commlens/commlens.hpp>
#include <cstdio>
#include <string>

static int early(int value) {
  commlens::region here(std::string("ear") + "ly");
  if (value > 0) return value;
  return 0;
}

static void thrown() {
  COMMLENS_REGION("thrown");
#ifdef __cpp_exceptions
  throw 1;
#endif
}

int main() {
  int answer = 0;
  bool written = false;
  {
    commlens::region all("main");
    const commlens::metric residual("residual", "1"), cells("cells");
    {
      commlens::loop steps("time steps", commlens::each);
      for (int step = 0; step < 3; ++step) {
        steps.iteration();
        static const commlens::region_name solve("solve");
        commlens::region here(solve);
        residual.record(1.0 / (1 << step));
      }
    }
    {
      commlens::loop sweeps(std::string("sweeps"));
      sweeps.iteration();
      cells.record(4096);
    }
    {
      COMMLENS_REGION("padded");
      commlens::tag(std::string("kind"), "IO");
    }
    commlens::begin("Größe µ/\xe6\xb5\x81");
    commlens::end("Größe µ/\xe6\xb5\x81");
    {
      commlens::region nothing("");
    }
    {
      commlens::region endless(std::string(1000, 'x'));
    }
    answer = early(42);
#ifdef __cpp_exceptions
    try {
      thrown();
    } catch (int) {
    }
#else
    thrown();
#endif
    commlens::pause();
    commlens::resume();
    commlens::reset();
    written = commlens::flush();
  }
  std::printf("answer %d\n", answer);
  std::fprintf(stderr, "version '%s' active %d written %d\n", commlens::version(), commlens::active(), written);
  return 0;
}
