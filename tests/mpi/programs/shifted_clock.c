// SPDX-License-Identifier: Apache-2.0
// A library that gives each host a CLOCK_MONOTONIC of its own: preloaded, it shifts what clock_gettime() returns.
// CLOCK_MONOTONIC_RAW stays the same on all hosts.  Host hN is N seconds ahead, and its clock drifts by (N - 1) times
// SHIFTED_PPM millionths; that of h2 jumps forward by a second SHIFTED_JUMP seconds after the program has looked at
// CLOCK_MONOTONIC_RAW for the first time.
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const double second = 1e9;
static double host, ppm, jumps_after;
static double first_look;

static double in_ns(const struct timespec* t) { return (double)t->tv_sec * second + (double)t->tv_nsec; }

__attribute__((constructor)) static void read_settings(void) {
  char name[64] = "";
  gethostname(name, sizeof name - 1);
  host = name[0] == 'h' ? atoi(name + 1) : 0;
  const char* const drift = getenv("SHIFTED_PPM");
  ppm = drift == NULL ? 0 : atof(drift) * (host - 1);
  const char* const jump = getenv("SHIFTED_JUMP");
  jumps_after = jump == NULL || host != 2 ? 1e30 : atof(jump) * second;
}

int clock_gettime(clockid_t clock, struct timespec* t) {
  const long failed = syscall(SYS_clock_gettime, clock, t);
  if (failed == 0 && clock == CLOCK_MONOTONIC_RAW && first_look == 0) {
    struct timespec then;  // by the other clock, because the two drift apart
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &then);
    first_look = in_ns(&then);
  }
  if (failed != 0 || clock != CLOCK_MONOTONIC) return (int)failed;
  // The drift counts from the start of the machine, so that it is the same for all processes of a host.
  double ahead = host * second + in_ns(t) * ppm / 1e6;
  if (first_look != 0 && in_ns(t) - first_look > jumps_after) ahead += second;
  const long long ns = t->tv_sec * 1000000000LL + t->tv_nsec + (long long)ahead;
  t->tv_sec = ns / 1000000000;
  t->tv_nsec = ns % 1000000000;
  return 0;
}
