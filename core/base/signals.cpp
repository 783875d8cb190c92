// SPDX-License-Identifier: Apache-2.0
#include "core/base/signals.h"

#include <strings.h>

#include <cstdlib>

namespace commlens {
namespace {

struct Named {
  int number;
  const char* name;
};

// The names of POSIX and Linux.  sigabbrev_np() has them, too, from glibc 2.32 on.
constexpr Named names[] = {
    {SIGHUP, "HUP"},       {SIGINT, "INT"},     {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},   {SIGTRAP, "TRAP"},
    {SIGABRT, "ABRT"},     {SIGBUS, "BUS"},     {SIGFPE, "FPE"},   {SIGKILL, "KILL"}, {SIGUSR1, "USR1"},
    {SIGSEGV, "SEGV"},     {SIGUSR2, "USR2"},   {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"}, {SIGTERM, "TERM"},
#ifdef SIGSTKFLT
    {SIGSTKFLT, "STKFLT"},
#endif
    {SIGCHLD, "CHLD"},     {SIGCONT, "CONT"},   {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"}, {SIGTTIN, "TTIN"},
    {SIGTTOU, "TTOU"},     {SIGURG, "URG"},     {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"}, {SIGVTALRM, "VTALRM"},
    {SIGPROF, "PROF"},     {SIGWINCH, "WINCH"}, {SIGPOLL, "POLL"}, {SIGPWR, "PWR"},   {SIGSYS, "SYS"},
};

// Returns a number of one to three digits; -1 for anything else.
int small_number(const std::string& text) {
  if (text.empty() || text.size() > 3 || text.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::atoi(text.c_str());
}

}  // namespace

const char* name_of_signal(int number) {
  for (const Named& known : names) {
    if (known.number == number) return known.name;
  }
  return nullptr;
}

int signal_named(const std::string& text) {
  if (text.empty()) return 0;
  const auto in_range = [](int number) { return number >= 0 && number <= SIGRTMAX ? number : -1; };
  if (const int number = small_number(text); number >= 0) return in_range(number);
  const std::string name = strncasecmp(text.c_str(), "SIG", 3) == 0 ? text.substr(3) : text;
  for (const Named& known : names) {
    if (strcasecmp(name.c_str(), known.name) == 0) return known.number;
  }
  for (const bool from_below : {true, false}) {
    if (strncasecmp(name.c_str(), from_below ? "RTMIN" : "RTMAX", 5) != 0) continue;
    const int from = from_below ? SIGRTMIN : SIGRTMAX;
    if (name.size() == 5) return from;
    const int distance = name[5] == (from_below ? '+' : '-') ? small_number(name.substr(6)) : -1;
    const int number = from_below ? from + distance : from - distance;
    return distance >= 0 && number >= SIGRTMIN && number <= SIGRTMAX ? number : -1;
  }
  return -1;
}

}  // namespace commlens
