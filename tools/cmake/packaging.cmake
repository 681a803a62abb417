# What `cmake --install` and cpack put where: the program with its data, manual page and completions; and the libraries, headers and
# CMake files with which other programs call the simulator (docs/install.md).
include(CMakePackageConfigHelpers)

# What is installed is built first: `./run.sh` builds the program alone. This rule comes before all others, so that nothing is
# installed where something does not build.
install(CODE "
  execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${PROJECT_BINARY_DIR}\" --target windtunnel_installed RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR \"Nothing is installed: what is to be installed does not build\")
  endif()" ALL_COMPONENTS)

set(windtunnel_public_libraries options core units workload platform layout plan operations passes cost schedule memory scenario engine lower timeline report evidence simulate)

list(TRANSFORM windtunnel_public_libraries PREPEND windtunnel_)
foreach(library IN LISTS windtunnel_public_libraries)
  string(REPLACE windtunnel_ "" exported_name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${exported_name})
endforeach()
install(TARGETS ${windtunnel_public_libraries} EXPORT windtunnel_targets ARCHIVE DESTINATION lib/windtunnel
        COMPONENT development)
install(EXPORT windtunnel_targets NAMESPACE windtunnel:: FILE windtunnel-targets.cmake DESTINATION lib/cmake/windtunnel
        COMPONENT development)
configure_package_config_file(tools/cmake/windtunnel-config.cmake.in "${PROJECT_BINARY_DIR}/windtunnel-config.cmake"
                              INSTALL_DESTINATION lib/cmake/windtunnel)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/windtunnel-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/windtunnel-config.cmake" "${PROJECT_BINARY_DIR}/windtunnel-config-version.cmake"
        DESTINATION lib/cmake/windtunnel COMPONENT development)
install(DIRECTORY tools/example DESTINATION share/windtunnel/tools COMPONENT development)
install(FILES sim/simulate/windtunnel.hpp DESTINATION include/windtunnel COMPONENT development)
install(DIRECTORY sim/ DESTINATION include/windtunnel COMPONENT development
        FILES_MATCHING PATTERN "*.hpp" PATTERN "testing.hpp" EXCLUDE PATTERN "*_fixtures.hpp" EXCLUDE
        PATTERN "test_*.hpp" EXCLUDE PATTERN "drawn_scenario.hpp" EXCLUDE PATTERN corpus EXCLUDE)

install(TARGETS windtunnel COMPONENT program)
install(TARGETS windtunnel_simgrid LIBRARY DESTINATION lib/windtunnel COMPONENT program)
if(TARGET windtunnel_zfp)
  install(TARGETS windtunnel_zfp LIBRARY DESTINATION lib/windtunnel COMPONENT program)
endif()
if(TARGET windtunnel_mpi)
  install(TARGETS windtunnel_mpi COMPONENT program)
endif()
install(DIRECTORY sim/importers/samples DESTINATION share/windtunnel/sim/importers COMPONENT program)
install(PROGRAMS tools/probe/probe.py DESTINATION share/windtunnel/tools/probe COMPONENT program)
foreach(folder models platforms scenarios validation)
  install(DIRECTORY ${folder} DESTINATION share/windtunnel COMPONENT program)
endforeach()
install(FILES README.md LICENSE CHANGELOG.md DESTINATION share/doc/windtunnel COMPONENT program)
install(DIRECTORY docs/ DESTINATION share/doc/windtunnel COMPONENT program)

# Completions and the manual page say what the built program says of itself.
set(generated "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${generated}")
foreach(pair "bash=windtunnel.bash" "zsh=_windtunnel" "fish=windtunnel.fish")
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 shell)
  list(GET pair 1 file)
  add_custom_command(OUTPUT "${generated}/${file}" COMMAND windtunnel completion ${shell} > "${generated}/${file}"
                     DEPENDS windtunnel VERBATIM)
  list(APPEND generated_files "${generated}/${file}")
endforeach()
install(FILES "${generated}/windtunnel.bash" DESTINATION share/bash-completion/completions RENAME windtunnel COMPONENT program)
install(FILES "${generated}/_windtunnel" DESTINATION share/zsh/vendor-completions COMPONENT program)
install(FILES "${generated}/windtunnel.fish" DESTINATION share/fish/vendor_completions.d COMPONENT program)
find_program(HELP2MAN help2man)
if(HELP2MAN)
  add_custom_command(OUTPUT "${generated}/windtunnel.1"
    COMMAND "${PROJECT_SOURCE_DIR}/tools/manual_commands.sh" $<TARGET_FILE:windtunnel> > "${generated}/manual.h2m"
    COMMAND "${HELP2MAN}" --no-info --section=1 --output=${generated}/windtunnel.1
            "--help-option=--help | sed '/^Examples:/,$d'"
            "--name=how long a training run of a large language model takes on a GPU cluster"
            "--include=${generated}/manual.h2m" ./$<TARGET_FILE_NAME:windtunnel>
    # help2man hands the program's path to a shell as it is, so it must have no space.
    WORKING_DIRECTORY $<TARGET_FILE_DIR:windtunnel>
    DEPENDS windtunnel tools/manual.h2m tools/manual_commands.sh VERBATIM)
  list(APPEND generated_files "${generated}/windtunnel.1")
  install(FILES "${generated}/windtunnel.1" DESTINATION share/man/man1 COMPONENT program)
else()
  message(STATUS "No manual page: help2man is not installed")
endif()
add_custom_target(windtunnel_generated ALL DEPENDS ${generated_files})
add_custom_target(windtunnel_installed)
add_dependencies(windtunnel_installed windtunnel windtunnel_simgrid windtunnel_generated)
if(TARGET windtunnel_mpi)
  add_dependencies(windtunnel_installed windtunnel_mpi)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Windtunnel developers <windtunnel@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Predicts how long LLM training takes on a GPU cluster, and says why")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME windtunnel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libwindtunnel-dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "windtunnel (= ${PROJECT_VERSION}), libboost-graph-dev, zlib1g-dev, libeigen3-dev, libzfp-dev")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
include(CPack)
