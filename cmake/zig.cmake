# SPDX-License-Identifier: Apache-2.0
# Toolchain: the compilers that tools/zig.sh has written into COMMLENS_COMPILERS, for another processor if wanted.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES COMMLENS_COMPILERS CMAKE_SYSTEM_PROCESSOR)
foreach(language C CXX ASM)
  set(CMAKE_${language}_COMPILER ${COMMLENS_COMPILERS}/clang)
endforeach()
set(CMAKE_CXX_COMPILER ${COMMLENS_COMPILERS}/clang++)
set(CMAKE_AR ${COMMLENS_COMPILERS}/ar)
set(CMAKE_RANLIB ${COMMLENS_COMPILERS}/ranlib)
# Nothing of what is built needs its symbols, and strip knows one processor only.
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-s)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -Wl,-s)
