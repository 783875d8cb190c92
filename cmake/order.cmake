# SPDX-License-Identifier: Apache-2.0
# What small jobs run lies together: a process then maps little of the code (decision 45).  Needs GNU's linker: its own
# script, with the functions of order.txt first.  Sets can_order and ordered_script.
if(DEFINED ordered_script)
  return()
endif()
set(ordered_script ${CMAKE_BINARY_DIR}/ordered.ld)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/order.txt)
set(link ${CMAKE_CXX_COMPILER} -x c -shared -nostdlib -Wl,-z,relro -Wl,-z,now /dev/null -o ${CMAKE_BINARY_DIR}/nothing.so)
execute_process(COMMAND ${link} -Wl,--verbose OUTPUT_VARIABLE script ERROR_QUIET)
file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/order.txt names)
list(TRANSFORM names REPLACE "^.+$" "    *(.text.\\0 .text.unlikely.\\0 .text.startup.\\0)\n")
# Files without sections of their own: the exported names, the calls of libc, and what libgcc and libc add to a library.
string(CONCAT names ${names} "    *libc/jumps.S.o(.text)\n    *_popcountdi2.o(.text)\n    *pthread_atfork.oS(.text)\n"
  "    *mpi/entry.S.o(.text)\n")
string(REGEX REPLACE "^.*\n=====+\n(.*)\n=====+\n.*$" "\\1" script "${script}")
string(REGEX REPLACE "(\n  \\.text +:\n  {\n)" "\\1${names}" script "${script}")
set(can_order FALSE)
if(script MATCHES "_ZN8commlens")
  file(WRITE ${ordered_script} "${script}")
  execute_process(COMMAND ${link} -Wl,-T,${ordered_script} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(can_order TRUE)
  endif()
endif()
file(REMOVE ${CMAKE_BINARY_DIR}/nothing.so)
