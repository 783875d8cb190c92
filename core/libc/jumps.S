/* SPDX-License-Identifier: Apache-2.0
 *
 * The linker turns each call of ours to a function of names.inc into one of __wrap_NAME, an indirect jump.  At first it
 * goes where the dynamic linker finds the name, which may be a function of the application; bind.cpp then puts libc's
 * own there, before main.
 */
        .text
#define LIBC(name)                                                                                           \
        .globl __wrap_##name; .hidden __wrap_##name; .type __wrap_##name, @function; .p2align 4;             \
__wrap_##name: endbr64; jmp *.Lslot_##name(%rip); .size __wrap_##name, . - __wrap_##name;
#include "core/libc/names.inc"
#undef LIBC

        .section .data.rel, "aw", @progbits
        .p2align 3
        .globl commlens_libc_slots
        .hidden commlens_libc_slots
        .type commlens_libc_slots, @object
commlens_libc_slots:
#define LIBC(name) .Lslot_##name: .quad __real_##name;
#include "core/libc/names.inc"
        .size commlens_libc_slots, . - commlens_libc_slots

        .section .note.GNU-stack, "", @progbits
