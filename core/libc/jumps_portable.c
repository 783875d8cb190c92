/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the place of jumps.S for processors without assembly of their own: functions instead of jumps.  Integers and
 * pointers are passed as words, the type that they have in registers.  No function of names.inc takes or returns
 * anything else, or more than seven of them. */

/* Some have variable arguments, such as open().  On ppc64le these store what they got in the frame of the caller, which
 * has room for it only if it calls a function of such a type.  The others do not care. */
typedef long word_function(long, ...);

/* These are not ours to hide: the linker would look for them among our own objects. */
#define LIBC(name) extern word_function __real_##name;
#include "core/libc/names.inc"
#undef LIBC

#pragma GCC visibility push(hidden)
extern word_function* commlens_libc_slots[];

#define LIBC(name) slot_of_##name,
enum {
#include "core/libc/names.inc"
};
#undef LIBC

#define LIBC(name)                                                             \
  long __wrap_##name(long a, long b, long c, long d, long e, long f, long g) { \
    return commlens_libc_slots[slot_of_##name](a, b, c, d, e, f, g);           \
  }
#include "core/libc/names.inc"
#undef LIBC

#define LIBC(name) __real_##name,
word_function* commlens_libc_slots[] = {
#include "core/libc/names.inc"
};
#pragma GCC visibility pop
