/* SPDX-License-Identifier: Apache-2.0
 *
 * The linker turns each call of ours to a function of names.inc into one of __wrap_NAME, an indirect jump.  At first it
 * goes where the dynamic linker finds the name, which may be a function of the application; bind.cpp then puts libc's
 * own there, before main.
 */
#if defined(__x86_64__)
#define JUMP(slot) endbr64; jmp *slot(%rip)
#elif defined(__aarch64__)
#define JUMP(slot) hint #34; adrp x16, slot; ldr x16, [x16, :lo12:slot]; br x16
#else
#error "for this processor, jumps_portable.c takes the place of this file"
#endif

        .text
#define LIBC(name)                                                                                           \
        .globl __wrap_##name; .hidden __wrap_##name; .type __wrap_##name, %function; .p2align 4;             \
__wrap_##name: JUMP(.Lslot_##name); .size __wrap_##name, . - __wrap_##name;
#include "core/libc/names.inc"
#undef LIBC

        .section .data.rel, "aw", %progbits
        .p2align 3
        .globl commlens_libc_slots
        .hidden commlens_libc_slots
        .type commlens_libc_slots, %object
commlens_libc_slots:
#define LIBC(name) .Lslot_##name: .quad __real_##name;
#include "core/libc/names.inc"
        .size commlens_libc_slots, . - commlens_libc_slots

        .section .note.GNU-stack, "", %progbits
