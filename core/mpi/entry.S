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
#include "core/base/processor.h"
#include "core/mpi/fortran_forms.h"

#if defined(COMMLENS_X86_64)
#include "core/mpi/entry_x86_64.inc"
#elif defined(COMMLENS_AARCH64)
#include "core/mpi/entry_aarch64.inc"
#else
#error "for this processor, entry_portable.cpp takes the place of this file"
#endif

        .text

/* First, beside the C names: they are in other pages than the Fortran names. */
BIND(bind, commlens_bind)
BIND(bind_fortran, commlens_bind_fortran)

#include "generated/entries.inc"

#undef ENTRY

/* The Fortran names: each stores its caller and its number, and jumps to the Fortran binding of the MPI library, which
 * calls the C name above, and perhaps others before it.  Names as all compilers write them, and those of mpi_f08. */
#define FORTRAN(name, upper, number, op) EACH_FORTRAN_FORM(name, upper, number, op)
#include "generated/fortran.inc"

#undef FORTRAN_NAME

        .section .data.rel.local, "aw", %progbits
        .p2align 6
        .globl commlens_slots
        .hidden commlens_slots
        .type commlens_slots, %object
commlens_slots:
#define ENTRY(name, slot) .quad .Lbind_##name, .Lbind_P##name;
#include "generated/entries.inc"
        .size commlens_slots, . - commlens_slots

        .p2align 6
        .globl commlens_fortran_slots
        .hidden commlens_fortran_slots
        .type commlens_fortran_slots, %object
commlens_fortran_slots:
#define FORTRAN_NAME(name, number, op) .quad .Lbind_##name;
#include "generated/fortran.inc"
        .size commlens_fortran_slots, . - commlens_fortran_slots

        .section .note.GNU-stack, "", %progbits
