# SPDX-License-Identifier: Apache-2.0
# Builds libcommlens.a for the binary interface ${family} from the objects of libcommlens.so: one object, in which only
# the C names of MPI and those of commlens.h are visible.  The names of PMPI and Fortran are those of the MPI library.

add_library(static_${family} OBJECT core/mpi/static_definitions.cpp)
target_compile_options(static_${family} PRIVATE ${warnings})
add_library(api_${family} OBJECT core/api/duplicate.c core/api/fortran77.c ${jumps} core/libc/bind.cpp)
target_compile_definitions(api_${family} PRIVATE COMMLENS_PROFILER)

set(folder ${CMAKE_BINARY_DIR}/lib/${family})
set(entries ${CMAKE_SOURCE_DIR}/generated/entries.inc)
file(STRINGS ${entries} mpi_names REGEX "^ENTRY")
list(TRANSFORM mpi_names REPLACE "^ENTRY\\((.*),.*$" "\\1")
list(JOIN mpi_names "\n" mpi_names)
file(GENERATE OUTPUT ${folder}/visible CONTENT "${mpi_names}\ncommlens_*\nCOMMLENS_*\n")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${entries})

# First all but static_definitions.cpp, which looks for the MPI library's names, not for those of entry.S.  Groups of
# inline functions are dissolved: the linker would drop one for a group of the application with the same name.  Unique
# symbols, which are variables in inline functions, cannot be made local: they get names of their own.
set(parts $<TARGET_OBJECTS:api_${family}> $<TARGET_OBJECTS:wrappers_${family}> $<TARGET_OBJECTS:core_mpi_${family}>
  ${core_objects})
set(definitions $<TARGET_OBJECTS:static_${family}>)
add_custom_command(OUTPUT ${folder}/libcommlens.a
  COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -Wl,--force-group-allocation ${libc_names} -o parts.o ${parts}
  COMMAND sh -c "${CMAKE_NM} parts.o | awk '$2 == \"u\" { print $3, \"commlens_own_\" $3 }' >unique"
  COMMAND ${CMAKE_OBJCOPY} --redefine-syms=unique parts.o
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbols=visible parts.o
  COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -o commlens.o parts.o ${definitions}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --localize-symbol=commlens_static_definition
    --localize-symbol=commlens_slots --localize-symbol=commlens_stand_aside commlens.o
  COMMAND ${CMAKE_COMMAND} -E rm -f libcommlens.a
  COMMAND ${CMAKE_AR} qc libcommlens.a commlens.o
  COMMAND ${CMAKE_RANLIB} libcommlens.a
  COMMAND ${CMAKE_COMMAND} -E rm -f parts.o commlens.o unique
  WORKING_DIRECTORY ${folder}
  DEPENDS ${parts} ${definitions} ${folder}/visible
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(commlens_static_${family} ALL DEPENDS ${folder}/libcommlens.a)
# Make knows a file of another target only after that target; commlens_${family} has the rest of the objects.
add_dependencies(commlens_static_${family} commlens_${family} static_${family} api_${family})
# A component of its own: the Python package does not contain it.
install(FILES ${folder}/libcommlens.a DESTINATION ${CMAKE_INSTALL_LIBDIR}/commlens/${family} COMPONENT static)
