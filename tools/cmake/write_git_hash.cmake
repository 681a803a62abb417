# Writes the header that tells from which commit the program was built; run at every build, touched only on change:
#   cmake -DSOURCE_DIR=... -DHEADER=... -P write_git_hash.cmake
# "unknown" outside a git checkout, "+dirty" after the hash when tracked files are changed.
set(hash "unknown")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND "${GIT}" rev-parse --show-toplevel WORKING_DIRECTORY "${SOURCE_DIR}"
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH "${SOURCE_DIR}" source)
  # A tarball unpacked inside another repository has no hash of its own.
  if(top STREQUAL source)
    execute_process(COMMAND "${GIT}" rev-parse --short=12 HEAD WORKING_DIRECTORY "${SOURCE_DIR}"
                    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(hash "${head}")
      execute_process(COMMAND "${GIT}" status --porcelain --untracked-files=no
                      WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE changes ERROR_QUIET)
      if(changes)
        string(APPEND hash "+dirty")
      endif()
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT [[
#pragma once

namespace windtunnel {
inline constexpr const char* git_hash = "@hash@";
}  // namespace windtunnel
]] @ONLY)
