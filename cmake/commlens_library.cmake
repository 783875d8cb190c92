# SPDX-License-Identifier: Apache-2.0
# Builds libcommlens.so for the binary interface ${family}, from its generated mpi.h: no MPI has to be there.

if(COMMLENS_PORTABLE)
  set(entry core/mpi/entry_portable.cpp)
  set(jumps core/libc/jumps_portable.c)
else()
  set(entry core/mpi/entry.S)
  set(jumps core/libc/jumps.S)
endif()

# SYSTEM: what the standard calls its arguments is not ours to warn of.
add_library(wrappers_${family} OBJECT
  ${entry}
  generated/wrap_p2p.cpp generated/wrap_collective.cpp generated/wrap_neighbor.cpp generated/wrap_rma.cpp
  generated/wrap_io.cpp generated/wrap_completion.cpp generated/wrap_comm.cpp generated/wrap_other.cpp
  generated/wrap_tool.cpp generated/barriers.cpp)
add_library(core_mpi_${family} OBJECT
  core/mpi/agreement.cpp core/mpi/api.cpp core/mpi/barriers.cpp core/mpi/bind.cpp core/mpi/creation.cpp core/mpi/datatypes.cpp core/mpi/finalize.cpp
  core/mpi/control.cpp core/mpi/finalize_facts.cpp core/mpi/fortran.cpp core/mpi/fortran_pcontrol.cpp core/mpi/lifecycle.cpp
  core/mpi/empty_blocks.cpp core/mpi/family_tuning.cpp core/mpi/messages.cpp core/mpi/mpit.cpp core/mpi/names.cpp core/mpi/peers.cpp core/mpi/pml_hook.cpp core/mpi/pvars.cpp core/mpi/reorder.cpp core/mpi/reorder_plan.cpp core/mpi/type_tree.cpp core/mpi/watch.cpp core/mpi/world.cpp)
foreach(part wrappers_${family} core_mpi_${family})
  target_include_directories(${part} SYSTEM PRIVATE ${CMAKE_SOURCE_DIR}/generated/mpi/${family})
  target_compile_definitions(${part} PRIVATE
    COMMLENS_VERSION="${PROJECT_VERSION}"
    COMMLENS_BUILD="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${family}")
  # Arguments are passed on as they come: not every wrapper looks at all of them.
  target_compile_options(${part} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wno-unused-parameter;-Wno-cast-function-type;-ftls-model=initial-exec>)
endforeach()

# Exceptions of the application pass through the wrappers; see class Call in core/mpi/wrap.h.
target_compile_options(wrappers_${family} PRIVATE
  $<$<COMPILE_LANGUAGE:CXX>:${hot_options};-fasynchronous-unwind-tables>)

# A function of the application that is called like one of libc is none of ours.
file(STRINGS ${CMAKE_SOURCE_DIR}/core/libc/names.inc libc_names REGEX "^LIBC")
list(TRANSFORM libc_names REPLACE "^LIBC\\((.*)\\)$" "-Wl,--wrap=\\1")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/libc/names.inc)

add_library(commlens_${family} SHARED
  core/api/duplicate.c core/api/fortran77.c ${jumps} core/libc/bind.cpp
  $<TARGET_OBJECTS:wrappers_${family}> $<TARGET_OBJECTS:core_mpi_${family}> ${core_objects})
target_compile_definitions(commlens_${family} PRIVATE COMMLENS_PROFILER) # for core/api/fortran77.c
set_target_properties(commlens_${family} PROPERTIES
  OUTPUT_NAME commlens
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/${family}
  LINKER_LANGUAGE CXX
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/exports.map)
# The job loads nothing but us and libc: libstdc++ and libgcc are inside, and nothing of them shows.  Never unloaded:
# a thread may be in one of our functions when the plug-in that brought us goes.
set(runtime -static-libstdc++ -static-libgcc)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(runtime) # the sanitizers look for the functions that throw in shared libraries
endif()
# The version script hides what comes from archives, too; linkers that know the option need not look at it.
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,--exclude-libs,ALL can_exclude_libs)
if(can_exclude_libs)
  list(APPEND runtime -Wl,--exclude-libs,ALL)
endif()
target_link_options(commlens_${family} PRIVATE
  ${runtime} ${libc_names} -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/exports.map)
include(cmake/order.cmake)
if(can_order)
  target_link_options(commlens_${family} PRIVATE -Wl,-T,${ordered_script})
  set_property(TARGET commlens_${family} APPEND PROPERTY LINK_DEPENDS ${ordered_script})
endif()
target_link_libraries(commlens_${family} PRIVATE ${CMAKE_DL_LIBS})
if(build_static)
  include(cmake/static_library.cmake)
endif()
install(TARGETS commlens_${family} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/commlens/${family})
