# SPDX-License-Identifier: Apache-2.0
# The reader for packages that bring Python's packages click, numpy and rich along: COMMLENS_READER names the folder for
# its modules, absolute or below the prefix, for example lib/python3/dist-packages.  Elsewhere pip installs the reader.
set(COMMLENS_READER "" CACHE STRING "Folder for the Python modules of the reader; empty: install none")
set(COMMLENS_PYTHON "/usr/bin/env python3" CACHE STRING "Python that runs bin/commlens")
if(NOT COMMLENS_READER)
  return()
endif()

install(DIRECTORY python/commlens DESTINATION ${COMMLENS_READER} COMPONENT reader
  PATTERN "__pycache__" EXCLUDE)

# Below the prefix, the program finds its modules without PYTHONPATH, also after the prefix has moved.
if(NOT IS_ABSOLUTE ${COMMLENS_READER})
  file(RELATIVE_PATH from_program /${CMAKE_INSTALL_BINDIR} /${COMMLENS_READER})
  set(search "import os\nimport sys\n\n\
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), \"${from_program}\"))\n")
else()
  set(search "import sys\n\n")
endif()
file(WRITE ${CMAKE_BINARY_DIR}/reader/commlens
  "#!${COMMLENS_PYTHON}\n${search}from commlens.__main__ import main\n\nsys.exit(main())\n")
install(PROGRAMS ${CMAKE_BINARY_DIR}/reader/commlens DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT reader)

# What pip, importlib.metadata and the tools of distributions know a package by.
file(READ pyproject.toml project)
string(REGEX MATCH "\ndependencies = \\[([^]]*)\\]" found "${project}")
string(REGEX MATCHALL "\"[^\"]+\"" needed "${CMAKE_MATCH_1}")
string(REGEX MATCH "\nrequires-python = \"([^\"]*)\"" found "${project}")
set(metadata "Metadata-Version: 2.1\nName: commlens\nVersion: ${PROJECT_VERSION}\nRequires-Python: ${CMAKE_MATCH_1}\n")
foreach(package ${needed})
  string(REPLACE "\"" "" package ${package})
  string(APPEND metadata "Requires-Dist: ${package}\n")
endforeach()
set(facts ${CMAKE_BINARY_DIR}/reader/commlens-${PROJECT_VERSION}.dist-info)
file(WRITE ${facts}/METADATA "${metadata}")
file(WRITE ${facts}/entry_points.txt "[console_scripts]\ncommlens = commlens.__main__:main\n")
file(WRITE ${facts}/INSTALLER "cmake\n")
install(DIRECTORY ${facts} DESTINATION ${COMMLENS_READER} COMPONENT reader)
