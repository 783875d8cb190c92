# SPDX-License-Identifier: Apache-2.0
# libcommlens-api, headers and Fortran source, and how CMake and pkg-config find them below whatever prefix they are put.
# `cmake --install BUILD --component api` installs this alone.
include(CMakePackageConfigHelpers)

add_library(commlens-api SHARED core/api/nothing.c core/api/duplicate.c core/api/fortran77.c)
# The number in the soname changes when a program linked before does not run any more; so far it never had to.
set_target_properties(commlens-api PROPERTIES
  EXPORT_NAME api VERSION ${PROJECT_VERSION} SOVERSION 0 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# Functions without effect look at no argument.  Those for Fortran are compiled together with what they call, and become
# as empty: the profiler, which has both, replaces both.
set_target_properties(commlens-api PROPERTIES UNITY_BUILD ON)
target_compile_options(commlens-api PRIVATE ${warnings} -Wno-unused-parameter -fno-semantic-interposition)
target_link_options(commlens-api PRIVATE -Wl,-z,defs -Wl,-z,relro -Wl,-z,now)
target_link_libraries(commlens-api PRIVATE ${CMAKE_DL_LIBS})
target_include_directories(commlens-api INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(fortran_folder ${CMAKE_INSTALL_DATADIR}/commlens)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/commlens)
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS commlens-api EXPORT commlens-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT api)
install(FILES include/commlens/commlens.h include/commlens/commlens.hpp include/commlens/tinyprof.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/commlens COMPONENT api)
install(FILES include/commlens/tinyprof/events.hpp include/commlens/tinyprof/profiler.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/commlens/tinyprof COMPONENT api)
install(FILES fortran/commlens.f90 DESTINATION ${fortran_folder} COMPONENT api)
# For PYTHONPATH, with any version of Python: what a program imports needs the standard library only.  All of the package,
# because a reader that is started with this PYTHONPATH, as the module files set it, is this copy.
install(DIRECTORY python/commlens DESTINATION ${CMAKE_INSTALL_DATADIR}/commlens/python COMPONENT api
  PATTERN "__pycache__" EXCLUDE)

install(EXPORT commlens-targets NAMESPACE commlens:: DESTINATION ${package_folder} COMPONENT api)
configure_package_config_file(cmake/commlens-config.cmake.in ${CMAKE_BINARY_DIR}/commlens-config.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS fortran_folder
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/commlens-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/commlens-config.cmake ${CMAKE_BINARY_DIR}/commlens-config-version.cmake
  DESTINATION ${package_folder} COMPONENT api)

# pkg-config knows the folder of the file, and the way from there to the prefix is the same wherever both are moved.
file(RELATIVE_PATH pkgconfig_to_prefix /${pkgconfig_folder} /)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix ${pkgconfig_to_prefix})
configure_file(cmake/commlens.pc.in ${CMAKE_BINARY_DIR}/commlens.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/commlens.pc DESTINATION ${pkgconfig_folder} COMPONENT api)
