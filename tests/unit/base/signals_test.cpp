// SPDX-License-Identifier: Apache-2.0
#include "core/base/signals.h"

#include <cstring>
#include <string>

#include "tests/unit/check.h"

namespace commlens {

TEST(a_signal_has_a_name_with_and_without_sig_and_a_number) {
  for (const char* text : {"USR2", "SIGUSR2", "usr2", "SigUsr2", "12"}) CHECK_EQ(signal_named(text), SIGUSR2);
  CHECK_EQ(signal_named("SIGRTMIN"), SIGRTMIN);
  CHECK_EQ(signal_named("RTMIN+3"), SIGRTMIN + 3);
  CHECK_EQ(signal_named("SIGRTMAX-1"), SIGRTMAX - 1);
}

TEST(nothing_and_zero_mean_no_signal) {
  CHECK_EQ(signal_named(""), 0);
  CHECK_EQ(signal_named("0"), 0);
}

TEST(what_is_no_signal_is_refused) {
  for (const char* text : {"SIG", "USR3", "-12", "+12", "1000", "65", "12 ", "RTMIN+", "RTMIN-1", "RTMAX+1", "RTMIN+99",
                           "RTMINx", "12x", " "}) {
    CHECK_EQ(signal_named(text), -1);
  }
}

TEST(every_signal_has_the_name_that_the_c_library_gives_it) {
  for (int number = -1; number <= SIGRTMAX; ++number) {
    const char* const name = name_of_signal(number);
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 32)
    const char* const known = sigabbrev_np(number);
    CHECK_EQ(name == nullptr, known == nullptr);
    if (name != nullptr && known != nullptr) CHECK_EQ(std::string(name), known);
#endif
#endif
    if (name != nullptr) CHECK_EQ(signal_named(name), number);
  }
}

}  // namespace commlens
