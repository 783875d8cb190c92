# SPDX-License-Identifier: Apache-2.0
# Builds libcommlens.so for the MPI whose compiler wrapper is ${wrapper}: asks the preprocessor where mpi.h is, which
# family it belongs to and which procedures it declares.

set(probe ${CMAKE_BINARY_DIR}/probe.c)
file(WRITE ${probe} "#include <mpi.h>\n")
execute_process(COMMAND ${wrapper} -E -dD ${probe} OUTPUT_VARIABLE text ERROR_VARIABLE complaint RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${wrapper} cannot preprocess mpi.h: ${complaint}")
endif()

if(text MATCHES "#define OPEN_MPI ")
  set(family openmpi)
  set(family_name "Open MPI")
elseif(text MATCHES "#define MPICH_VERSION|#define MPICH_NAME|#define I_MPI_VERSION")
  set(family mpich)
  set(family_name "MPICH")
else()
  message(FATAL_ERROR "${wrapper}: neither Open MPI nor of the MPICH family; commlens supports no other yet")
endif()
if(TARGET commlens_${family})
  message(FATAL_ERROR "two MPI libraries of the ${family} family were given; one build serves both")
endif()

# The name the loader knows the library by, for programs from which the linker dropped it.
file(WRITE ${CMAKE_BINARY_DIR}/probe_link.c "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n")
execute_process(
  COMMAND ${wrapper} ${CMAKE_BINARY_DIR}/probe_link.c -o ${CMAKE_BINARY_DIR}/probe_link -Wl,--no-as-needed
  ERROR_VARIABLE complaint RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${wrapper} cannot link an MPI program: ${complaint}")
endif()
execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${CMAKE_BINARY_DIR}/probe_link OUTPUT_VARIABLE needed)
string(REGEX MATCH "NEEDED +(libmpi(ch)?\\.so[^ \n]*)" ignored "${needed}")
set(mpi_soname ${CMAKE_MATCH_1})
if(NOT mpi_soname)
  message(FATAL_ERROR "${wrapper} links no libmpi.so or libmpich.so; commlens needs MPI as a shared library")
endif()

string(REGEX MATCH "# 1 \"([^\"]*)/mpi\\.h\"" ignored "${text}")
set(mpi_include ${CMAKE_MATCH_1})
string(REGEX REPLACE "#define[^\n]*" "" text "${text}")
string(REGEX MATCHALL "PMPI_[A-Za-z0-9_]+[ \n]*\\(" declared "${text}")
set(have "/* The procedures that ${mpi_include}/mpi.h declares. */\n")
foreach(name ${declared})
  string(REGEX REPLACE "^P(MPI_[A-Za-z0-9_]+).*" "\\1" name "${name}")
  string(APPEND have "#define COMMLENS_HAVE_${name} 1\n")
endforeach()
list(LENGTH declared count)
message(STATUS "${family_name}: ${mpi_include}/mpi.h declares ${count} procedures")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${family}/commlens_have.h CONTENT "${have}" @ONLY)

# SYSTEM: the warnings of mpi.h are not ours.
add_library(wrappers_${family} OBJECT
  core/mpi/entry.S
  generated/wrap_p2p.cpp generated/wrap_collective.cpp generated/wrap_neighbor.cpp generated/wrap_rma.cpp
  generated/wrap_io.cpp generated/wrap_completion.cpp generated/wrap_comm.cpp generated/wrap_other.cpp)
add_library(core_mpi_${family} OBJECT
  core/mpi/api.cpp core/mpi/bind.cpp core/mpi/collect.cpp core/mpi/creation.cpp core/mpi/datatypes.cpp core/mpi/fortran.cpp core/mpi/lifecycle.cpp
  core/mpi/public.cpp)
foreach(part wrappers_${family} core_mpi_${family})
  target_include_directories(${part} PRIVATE ${CMAKE_BINARY_DIR}/${family})
  target_include_directories(${part} SYSTEM PRIVATE ${mpi_include})
  target_compile_definitions(${part} PRIVATE
    OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX
    COMMLENS_FAMILY="${family}" COMMLENS_FAMILY_NAME="${family_name}" COMMLENS_VERSION="${PROJECT_VERSION}"
    COMMLENS_MPI_SONAME="${mpi_soname}"
    COMMLENS_BUILD="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${family}")
  # Arguments are passed on as they come: not every wrapper looks at all of them.
  target_compile_options(${part} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wno-unused-parameter;-Wno-cast-function-type;-ftls-model=initial-exec>)
endforeach()

# Exceptions of the application pass through the wrappers; see class Call in core/mpi/wrap.h.
target_compile_options(wrappers_${family} PRIVATE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fasynchronous-unwind-tables>)

add_library(commlens_${family} SHARED
  $<TARGET_OBJECTS:wrappers_${family}> $<TARGET_OBJECTS:core_mpi_${family}> $<TARGET_OBJECTS:core_hot>
  $<TARGET_OBJECTS:core_cold> $<TARGET_OBJECTS:core_out> $<TARGET_OBJECTS:sqlite>)
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
target_link_options(commlens_${family} PRIVATE
  ${runtime} -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete -Wl,--exclude-libs,ALL
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/exports.map)
target_link_libraries(commlens_${family} PRIVATE ${CMAKE_DL_LIBS})
install(TARGETS commlens_${family} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/commlens/${family})
