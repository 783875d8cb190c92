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
set(modules_folder ${CMAKE_INSTALL_DATADIR}/commlens/modulefiles)
set(site_folder ${CMAKE_INSTALL_DATADIR}/commlens/site)
install(CODE "
  set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
  set(version \"${PROJECT_VERSION}\")
  set(lib \"${CMAKE_INSTALL_LIBDIR}\")
  set(share \"${CMAKE_INSTALL_DATADIR}\")
  set(library \"\${prefix}/\${lib}/commlens/libcommlens-any.so\")
  function(configured from to)
    configure_file(\"${CMAKE_SOURCE_DIR}/\${from}\" \"\$ENV{DESTDIR}\${prefix}/\${to}\" @ONLY)
    set(CMAKE_INSTALL_MANIFEST_FILES \${CMAKE_INSTALL_MANIFEST_FILES} \"\${prefix}/\${to}\" PARENT_SCOPE)
  endfunction()
  foreach(module commlens commlens-always)
    configured(cmake/\${module}.lua.in \"${modules_folder}/\${module}/\${version}.lua\")
    configured(cmake/\${module}.tcl.in \"${modules_folder}/\${module}/\${version}\")
  endforeach()
  configured(cmake/commlens.conf.in ${site_folder}/commlens.conf)
  configured(cmake/tmpfiles.conf.in ${site_folder}/commlens-tmpfiles.conf)
  configured(slurm/plugstack.conf.in ${site_folder}/plugstack.conf)
  configured(slurm/task_prolog.sh.in ${site_folder}/task_prolog.sh)
" COMPONENT modules)
