# SimGrid as Debian ships it has no CMake config: find the header and the library, and read the version from the header.
find_path(SimGrid_INCLUDE_DIR NAMES simgrid/version.h)
find_library(SimGrid_LIBRARY NAMES simgrid)
if(SimGrid_INCLUDE_DIR)
  file(STRINGS "${SimGrid_INCLUDE_DIR}/simgrid/version.h" simgrid_version_lines
       REGEX "^#define SIMGRID_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" simgrid_version_numbers "${simgrid_version_lines}")
  string(REPLACE ";" "." SimGrid_VERSION "${simgrid_version_numbers}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SimGrid REQUIRED_VARS SimGrid_LIBRARY SimGrid_INCLUDE_DIR
                                  VERSION_VAR SimGrid_VERSION)
if(SimGrid_FOUND AND NOT TARGET SimGrid::SimGrid)
  add_library(SimGrid::SimGrid UNKNOWN IMPORTED)
  set_target_properties(SimGrid::SimGrid PROPERTIES
    IMPORTED_LOCATION "${SimGrid_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SimGrid_INCLUDE_DIR}")
endif()
