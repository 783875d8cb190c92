# SPDX-License-Identifier: Apache-2.0
# What small jobs run lies together: a process then maps little of the code (decision 45).  Needs GNU's linker: its own
# script, with the functions of order.txt first.  Sets can_order and ordered_script.
if(DEFINED ordered_script)
  return()
endif()
set(ordered_script ${CMAKE_BINARY_DIR}/ordered.ld)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/order.txt)
separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}") # they may name another linker
set(link ${CMAKE_CXX_COMPILER} ${flags} -x c -shared -nostdlib -Wl,-z,relro -Wl,-z,now /dev/null
  -o ${CMAKE_BINARY_DIR}/nothing.so)
execute_process(COMMAND ${link} -Wl,--verbose OUTPUT_VARIABLE script ERROR_QUIET)
file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/order.txt names)
list(TRANSFORM names REPLACE "^.+$" "    *(.text.\\0 .text.unlikely.\\0 .text.startup.\\0 .text.exit.\\0)\n")
string(CONCAT names ${names})
# Files without such sections: the calls of libc, what the compiler and libc add to a library, and the exported names.
foreach(file *libc/jumps.S.o *crtbeginS.o *_popcount*.o *pthread_atfork.oS *mpi/entry.S.o)
  string(APPEND names "    ${file}(.text)\n")
endforeach()
string(REGEX REPLACE "^.*\n=====+\n(.*)\n=====+\n.*$" "\\1" script "${script}")
string(REGEX REPLACE "(\n  \\.text +:\n  {\n)" "\\1${names}" script "${script}")
set(can_order FALSE)
if(script MATCHES "_ZN8commlens")
  file(CONFIGURE OUTPUT ${ordered_script} CONTENT "${script}" @ONLY) # only if it has changed
  execute_process(COMMAND ${link} -Wl,-T,${ordered_script} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(can_order TRUE)
  endif()
endif()
file(REMOVE ${CMAKE_BINARY_DIR}/nothing.so)
