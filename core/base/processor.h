/* SPDX-License-Identifier: Apache-2.0
 * Also read by the assembler and by C: no C++ here.
 *
 * Which processor the library is built for: COMMLENS_X86_64, COMMLENS_AARCH64, or COMMLENS_PORTABLE.  The last one has
 * no assembly, reads the time by clock_gettime(), and finds call sites but no call paths.  The build defines it for
 * processors without code of their own, and with the CMake option COMMLENS_PORTABLE for any. */
#pragma once

#if !defined(COMMLENS_PORTABLE)
#if defined(__x86_64__)
#define COMMLENS_X86_64 1
#elif defined(__aarch64__)
#define COMMLENS_AARCH64 1
#else
#define COMMLENS_PORTABLE 1
#endif
#endif

/* The folder of libraries in Debian and distributions that are derived from it. */
#if defined(__x86_64__)
#define COMMLENS_MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define COMMLENS_MULTIARCH "aarch64-linux-gnu"
#elif defined(__powerpc64__)
#define COMMLENS_MULTIARCH "powerpc64le-linux-gnu"
#elif defined(__riscv)
#define COMMLENS_MULTIARCH "riscv64-linux-gnu"
#elif defined(__s390x__)
#define COMMLENS_MULTIARCH "s390x-linux-gnu"
#else
#define COMMLENS_MULTIARCH "no-such-folder"
#endif
