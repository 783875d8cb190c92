// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <string>

namespace commlens {

// Signals that end a process unless it has a handler: from outside (batch systems, users) and its own faults.
inline constexpr int fatal_signals[] = {SIGHUP,  SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGABRT,
                                        SIGSEGV, SIGBUS, SIGFPE,  SIGILL,  SIGSYS};

// The signal that a user means: "USR2", "SIGUSR2", "RTMIN+3", "RTMAX-1" or "12", in any case of letters.
// 0 for "" and "0"; -1 when there is none of this name.
int signal_named(const std::string& text);

}  // namespace commlens
