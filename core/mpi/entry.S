/* SPDX-License-Identifier: Apache-2.0
 *
 * The exported names.  MPI_X and PMPI_X are one indirect jump through commlens_slots, which holds, for each:
 *   at first       a stub that asks commlens_bind (bind.cpp) where to go, like a PLT entry
 *   when measuring our wrapper
 *   when not       the next definition of the same name: the MPI library's, or another tool's
 *
 * A jump instead of a C function, so that a call of an MPI with another binary interface (4-byte handles instead of
 * 8-byte ones) passes through unharmed, and so that the wrapper sees the application's return address.
 */
#include "core/mpi/fortran_forms.h"

#if !defined(__x86_64__)
#error "commlens has entry code for x86-64 only"
#endif

        .text

#define ENTRY(name, slot)                                                                                    \
        .globl name; .type name, @function; .p2align 4;                                                      \
name:   endbr64; jmp *commlens_slots + 16 * slot(%rip); .size name, . - name;                                \
        .globl P##name; .type P##name, @function; .p2align 4;                                                \
P##name: endbr64; jmp *commlens_slots + 16 * slot + 8(%rip); .size P##name, . - P##name;                     \
.Lbind_##name: endbr64; pushq $(2 * slot); jmp bind;                                                         \
.Lbind_P##name: endbr64; pushq $(2 * slot + 1); jmp bind;

#include "generated/entries.inc"

#undef ENTRY

/* The Fortran names: each stores its caller and its number, and jumps to the Fortran binding of the MPI library, which
 * calls the C name above, and perhaps others before it.  Names as all compilers write them, and those of mpi_f08. */
#define FORTRAN_NAME(name, number, op)                                                                           \
        .globl name; .type name, @function; .p2align 4;                                                      \
name:   endbr64;                                                                                             \
        movq commlens_fortran_call@gottpoff(%rip), %rax; movq (%rsp), %r11; movq %r11, %fs:(%rax);           \
        movq $(op), %fs:8(%rax); movq %rsp, %fs:16(%rax);                                                    \
        jmp *commlens_fortran_slots + 8 * (number)(%rip); .size name, . - name;                              \
.Lbind_##name: endbr64; pushq $(number); jmp bind_fortran;

#define FORTRAN(name, upper, number, op)                                                                     \
        FORTRAN_NAME(name##_, FORTRAN_FORMS * number, op)                                                    \
        FORTRAN_NAME(name##_f08_, FORTRAN_FORMS * number + 1, op)                                            \
        FORTRAN_NAME(name##_f08ts_, FORTRAN_FORMS * number + 2, op)                                          \
        FORTRAN_NAME(name##_f08ts_large_, FORTRAN_FORMS * number + 3, op)                                    \
        FORTRAN_NAME(name, FORTRAN_FORMS * number + 4, op)                                                   \
        FORTRAN_NAME(name##__, FORTRAN_FORMS * number + 5, op)                                               \
        FORTRAN_NAME(upper, FORTRAN_FORMS * number + 6, op)                                                  \
        FORTRAN_NAME(p##name##_, FORTRAN_FORMS * number + 7, op)                                             \
        FORTRAN_NAME(p##name##_f08_, FORTRAN_FORMS * number + 8, op)                                         \
        FORTRAN_NAME(name##_f08_large_, FORTRAN_FORMS * number + 9, op)                                      \
        FORTRAN_NAME(name##_cptr_, FORTRAN_FORMS * number + 10, op)

#include "generated/fortran.inc"

#undef FORTRAN_NAME

/* The stack contains the number of the entry, then the return address.  Preserves all registers that may hold
 * arguments.  The application may define a function of the same name, so these include registers that MPI does not use:
 * the first eight vector registers, their number in al, and the static chain in r10. */
#define BIND(name, target)                                                                                   \
        .p2align 4;                                                                                          \
name:   .cfi_startproc; .cfi_def_cfa_offset 16;                                                              \
        pushq %rdi; pushq %rsi; pushq %rdx; pushq %rcx; pushq %r8; pushq %r9; pushq %r10; pushq %rax;        \
        .cfi_adjust_cfa_offset 64;                                                                           \
        subq $128, %rsp; .cfi_adjust_cfa_offset 128;                                                         \
        movups %xmm0, (%rsp); movups %xmm1, 16(%rsp); movups %xmm2, 32(%rsp); movups %xmm3, 48(%rsp);        \
        movups %xmm4, 64(%rsp); movups %xmm5, 80(%rsp); movups %xmm6, 96(%rsp); movups %xmm7, 112(%rsp);     \
        movq 192(%rsp), %rdi;                                                                                \
        call target;                                                                                         \
        movq %rax, %r11;                                                                                     \
        movups (%rsp), %xmm0; movups 16(%rsp), %xmm1; movups 32(%rsp), %xmm2; movups 48(%rsp), %xmm3;        \
        movups 64(%rsp), %xmm4; movups 80(%rsp), %xmm5; movups 96(%rsp), %xmm6; movups 112(%rsp), %xmm7;     \
        addq $128, %rsp; .cfi_adjust_cfa_offset -128;                                                        \
        popq %rax; popq %r10; popq %r9; popq %r8; popq %rcx; popq %rdx; popq %rsi; popq %rdi;                \
        .cfi_adjust_cfa_offset -64;                                                                          \
        addq $8, %rsp; .cfi_adjust_cfa_offset -8;                                                            \
        jmp *%r11;                                                                                           \
        .cfi_endproc;

BIND(bind, commlens_bind)
BIND(bind_fortran, commlens_bind_fortran)

        .section .data.rel.local, "aw", @progbits
        .p2align 6
        .globl commlens_slots
        .hidden commlens_slots
        .type commlens_slots, @object
commlens_slots:
#define ENTRY(name, slot) .quad .Lbind_##name, .Lbind_P##name;
#include "generated/entries.inc"
        .size commlens_slots, . - commlens_slots

        .p2align 6
        .globl commlens_fortran_slots
        .hidden commlens_fortran_slots
        .type commlens_fortran_slots, @object
commlens_fortran_slots:
#define FORTRAN_NAME(name, number, op) .quad .Lbind_##name;
#include "generated/fortran.inc"
        .size commlens_fortran_slots, . - commlens_fortran_slots

        .section .note.GNU-stack, "", @progbits
