# SPDX-License-Identifier: Apache-2.0
# Toolchain file: builds for another processor with the cross compilers of Debian and Ubuntu.
#   cmake -DCMAKE_TOOLCHAIN_FILE=cmake/cross.cmake -DCOMMLENS_PROCESSOR=aarch64|ppc64le|riscv64|s390x ...
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${COMMLENS_PROCESSOR})
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES COMMLENS_PROCESSOR)
string(REPLACE ppc64le powerpc64le triple "${COMMLENS_PROCESSOR}-linux-gnu")
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)
# Tests for aarch64 run in a virtual machine (tools/machine.sh), which has this processor.
if(NOT COMMLENS_PROCESSOR STREQUAL aarch64)
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${COMMLENS_PROCESSOR}-static;-L;/usr/${triple})
endif()
