// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <string>

namespace commlens {

// Signals that end a process unless it handles them: sent from outside (by batch systems or users), or raised by its
// own faults.
inline constexpr int fatal_signals[] = {SIGHUP,  SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGABRT,
                                        SIGSEGV, SIGBUS, SIGFPE,  SIGILL,  SIGSYS};

// Returns the signal that the user named: "USR2", "SIGUSR2", "RTMIN+3", "RTMAX-1" or "12", in upper or lower case.
// Returns 0 for "" and "0", and -1 when no signal has this name.
int signal_named(const std::string& text);

// Returns "TERM" for SIGTERM; null for a real-time signal and for a number that is no signal.
const char* name_of_signal(int number);

}  // namespace commlens
