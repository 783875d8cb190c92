/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether a process may be measured at all; the only place that does. */
#pragma once

#include <stdbool.h>
#include <sys/auxv.h>

/* True when the kernel gave this process rights that its user does not have: set-user-ID, set-group-ID, file
 * capabilities.  Its environment may then come from an attacker.  commlens ignores it, measures, writes and prints
 * nothing, and passes every call on.  The kernel's answer holds for the lifetime of the process, even after the process
 * gives the rights back. */
static inline bool commlens_is_privileged(void) { return getauxval(AT_SECURE) != 0; }
