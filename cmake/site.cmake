# SPDX-License-Identifier: Apache-2.0
# What a site puts beside the programs: manual pages, completion of the command line, and module files.
set(completion generated/completion)
file(GLOB manual_pages_1 generated/man/*.1)
file(GLOB manual_pages_5 generated/man/*.5)
install(FILES ${manual_pages_1} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual_pages_5} DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)

# Shells look for a file with the name of the command.
foreach(program commlens commlens-run)
  install(FILES ${completion}/commlens.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME ${program})
  install(FILES ${completion}/commlens.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
    RENAME ${program}.fish)
endforeach()
install(FILES ${completion}/_commlens DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# The prefix is known when the files are installed: sites copy module files to a place of their own.  A component of their
# own, because a Python package has no prefix.
set(modules_folder ${CMAKE_INSTALL_DATADIR}/commlens/modulefiles/commlens)
install(CODE "
  set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
  set(version \"${PROJECT_VERSION}\")
  set(lib \"${CMAKE_INSTALL_LIBDIR}\")
  set(share \"${CMAKE_INSTALL_DATADIR}\")
  foreach(kind lua tcl)
    string(REPLACE tcl \"\" name \".\${kind}\")
    string(REGEX REPLACE \"[.]$\" \"\" name \"${PROJECT_VERSION}\${name}\")
    set(file \"\$ENV{DESTDIR}\${prefix}/${modules_folder}/\${name}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/cmake/modulefile.\${kind}.in\" \"\${file}\" @ONLY)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${prefix}/${modules_folder}/\${name}\")
  endforeach()
" COMPONENT modules)
