# One folder of sim/ is one layer, one library and (where it has tests) one test program.
#
#   windtunnel_layer(units SOURCES quantity_reader.cpp DEPENDS core)
#   windtunnel_layer_test(units SOURCES quantity_test.cpp)
#   windtunnel_layer_benchmark(engine SOURCES engine_bench.cpp)
add_library(windtunnel_options INTERFACE)
target_include_directories(windtunnel_options INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/sim>" "$<INSTALL_INTERFACE:include/windtunnel>")
target_compile_features(windtunnel_options INTERFACE cxx_std_20)
# How we compile is ours: whoever uses the installed libraries chooses for himself.
add_library(windtunnel_build_options INTERFACE)
target_link_libraries(windtunnel_options INTERFACE "$<BUILD_INTERFACE:windtunnel_build_options>")
target_compile_definitions(windtunnel_build_options INTERFACE WINDTUNNEL_VERSION="${PROJECT_VERSION}")
target_compile_options(windtunnel_build_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror)
# Position-independent code would keep functions that others can call from being inlined, lest a program replaces them: none does.
target_compile_options(windtunnel_build_options INTERFACE -fno-semantic-interposition)
# GCC 12 warns of std::string appends that cannot overlap (GCC bug 105651).
target_compile_options(windtunnel_build_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# Clang warns of WT_EXPECT(!"what cannot happen").
target_compile_options(windtunnel_build_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-string-conversion>)
# Messages of broken contracts name files as they stand in the repository.
target_compile_options(windtunnel_build_options INTERFACE "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(WINDTUNNEL_SANITIZE)
  target_compile_options(windtunnel_build_options INTERFACE -fsanitize=address,undefined
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(windtunnel_build_options INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(windtunnel_build_options INTERFACE WINDTUNNEL_SANITIZED)  # tests do less
  # With sanitizers GCC 12 takes variables of <regex> and <optional> for uninitialized that are not.
  target_compile_options(windtunnel_build_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(WINDTUNNEL_SANITIZE_THREADS)
  # GCC warns that it does not follow fences, which headers of SimGrid have; SimGrid runs in one thread.
  target_compile_options(windtunnel_build_options INTERFACE -fsanitize=thread -Wno-tsan)
  target_link_options(windtunnel_build_options INTERFACE -fsanitize=thread)
  target_compile_definitions(windtunnel_build_options INTERFACE WINDTUNNEL_SANITIZED)
endif()
set(fuzzed_layers core units workload platform plan scenario)  # what reads a scenario: the fuzzer is led by the branches taken there

# Parsing the standard library is a third of a cold build: with precompiled headers it is parsed once for the libraries and
# once for the tests. ccache cannot share such objects between checkouts, so where it is installed they are off.
if(CCACHE)
  set(precompile_by_default OFF)
else()
  set(precompile_by_default ON)
endif()
option(WINDTUNNEL_PRECOMPILED_HEADERS "Parse the standard library once for all files" ${precompile_by_default})
if(WINDTUNNEL_PRECOMPILED_HEADERS)
  # GCC 12 forgets that precompiled headers are the system's, and warns of string appends in them (GCC bug 105329).
  target_compile_options(windtunnel_build_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>)
endif()
# Compiling all files of a layer as one parses our own headers once, which halves a first build; each change then compiles
# all. So that is off where ccache is there, as on a machine where things are changed.
option(WINDTUNNEL_UNITY "Compile files of a layer together" ${precompile_by_default})
if(WINDTUNNEL_UNITY)
  # Names of one file may be those of another's variables.
  target_compile_options(windtunnel_build_options INTERFACE $<$<CXX_COMPILER_ID:GNU,Clang>:-Wno-shadow> $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>)
endif()

set(standard_headers <algorithm> <array> <cmath> <cstdint> <functional> <iterator> <map> <memory> <optional> <set>
    <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>)

# Precompiles `standard_headers` and what else is named, or uses what another target has precompiled.
function(windtunnel_precompile target)
  cmake_parse_arguments(ARG "" "REUSE_FROM" "HEADERS" ${ARGN})
  if(NOT WINDTUNNEL_PRECOMPILED_HEADERS)
    return()
  endif()
  if(ARG_REUSE_FROM)
    target_precompile_headers(${target} REUSE_FROM ${ARG_REUSE_FROM})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      # CMake compiles programs with -fPIE, and GCC refuses headers that the libraries have precompiled with -fPIC.
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  else()
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS} ${standard_headers})
  endif()
endfunction()

# A source file with no need of its own: it carries the precompiled header of all libraries.
add_library(windtunnel_precompiled OBJECT "${PROJECT_SOURCE_DIR}/tools/cmake/precompiled.cpp")
target_link_libraries(windtunnel_precompiled PRIVATE windtunnel_options)
windtunnel_precompile(windtunnel_precompiled)

# Where tests and benchmarks find shipped files. A definition for all of them would make every object depend on the checkout's path.
add_library(windtunnel_source_dir STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tools/cmake/source_dir.cpp")
target_link_libraries(windtunnel_source_dir PRIVATE windtunnel_options)
set_source_files_properties("${PROJECT_SOURCE_DIR}/tools/cmake/source_dir.cpp" PROPERTIES
  COMPILE_DEFINITIONS WINDTUNNEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# Test code is compiled without optimisation: it runs once, and the libraries that it calls are optimised.
if(doctest_FOUND)
  add_library(windtunnel_doctest_main STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tools/cmake/doctest_main.cpp")
  target_link_libraries(windtunnel_doctest_main PRIVATE windtunnel_options PUBLIC doctest::doctest)
  target_compile_options(windtunnel_doctest_main PRIVATE -O0)
  windtunnel_precompile(windtunnel_doctest_main HEADERS <doctest/doctest.h>)
endif()

# ONCE_A_COMMAND: nothing in the layer runs often, and optimising it fully would take a first build longer than users ever gain.
function(windtunnel_layer name)
  cmake_parse_arguments(ARG "ONCE_A_COMMAND" "" "SOURCES;DEPENDS;EXTERNAL" ${ARGN})
  add_library(windtunnel_${name} STATIC ${ARG_SOURCES})
  set_target_properties(windtunnel_${name} PROPERTIES UNITY_BUILD ${WINDTUNNEL_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  windtunnel_precompile(windtunnel_${name} REUSE_FROM windtunnel_precompiled)
  if(ARG_ONCE_A_COMMAND)
    target_compile_options(windtunnel_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND windtunnel_)
  if(WINDTUNNEL_FUZZ AND name IN_LIST fuzzed_layers)
    target_compile_options(windtunnel_${name} PRIVATE -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table)
  endif()
  target_link_libraries(windtunnel_${name} PUBLIC windtunnel_options ${ARG_DEPENDS}
                        PRIVATE ${ARG_EXTERNAL})
endfunction()

# The files of a table: each line WT_ANYTHING(name) of things.def stands for things/name.cpp. A line is all that CMake needs to know of
# a new entry.
function(windtunnel_table_sources variable table)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${table}")
  get_filename_component(folder "${table}" NAME_WE)
  file(STRINGS "${table}" sources REGEX "^WT_[A-Z]+\\(")
  list(TRANSFORM sources REPLACE "^WT_[A-Z]+\\((.*)\\)$" "${folder}/\\1.cpp")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # they define functions of the same names
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# CASES_APART: a case may make SimGrid's engine, of which a process has one.
function(windtunnel_layer_test name)
  if(NOT doctest_FOUND)
    return()
  endif()
  cmake_parse_arguments(ARG "CASES_APART" "" "SOURCES;DEPENDS;EXTERNAL" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND windtunnel_)
  add_executable(windtunnel_${name}_test ${ARG_SOURCES})
  set_target_properties(windtunnel_${name}_test PROPERTIES UNITY_BUILD ${WINDTUNNEL_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  target_link_libraries(windtunnel_${name}_test PRIVATE windtunnel_doctest_main windtunnel_source_dir windtunnel_${name}
                        ${ARG_DEPENDS} ${ARG_EXTERNAL})
  target_compile_options(windtunnel_${name}_test PRIVATE -O0)
  windtunnel_precompile(windtunnel_${name}_test REUSE_FROM windtunnel_doctest_main)
  # Properties draw the same cases each time, under sanitizers a fifth of them; tools/property_tests.sh draws others.
  set(draws "seed=20261123")
  if(WINDTUNNEL_SANITIZE OR WINDTUNNEL_SANITIZE_THREADS)
    string(APPEND draws " max_success=20")
  else()
    set(ARG_CASES_APART TRUE)
  endif()
  if(ARG_CASES_APART)
    doctest_discover_tests(windtunnel_${name}_test TEST_PREFIX "${name}: "
                           PROPERTIES LABELS unit ENVIRONMENT "RC_PARAMS=${draws}")
    return()
  endif()
  # A sanitizer takes a fifth of a second to start: a process for each file, not for each case.
  list(FILTER ARG_SOURCES INCLUDE REGEX "_test\\.cpp$")
  foreach(source ${ARG_SOURCES})
    add_test(NAME "${name}: ${source}" COMMAND windtunnel_${name}_test "--source-file=*/${source}")
    set_tests_properties("${name}: ${source}" PROPERTIES LABELS unit ENVIRONMENT "RC_PARAMS=${draws}"
                         FAIL_REGULAR_EXPRESSION "test cases: +0 ")
  endforeach()
endfunction()

function(windtunnel_layer_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT benchmark_FOUND)
    return()
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND windtunnel_)
  add_executable(windtunnel_${name}_bench ${ARG_SOURCES})
  target_link_libraries(windtunnel_${name}_bench PRIVATE windtunnel_${name} windtunnel_source_dir ${ARG_DEPENDS}
                        benchmark::benchmark)
endfunction()

# Files of a folder as string literals in `output`, which HEADER declares: TEXTS are name=file or name=file+file (embed_text.cmake).
function(windtunnel_embed output)
  cmake_parse_arguments(ARG "" "FOLDER;HEADER" "FILES;TEXTS" ${ARGN})
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_FOLDER}")
  list(TRANSFORM ARG_FILES PREPEND "${folder}/")
  set_source_files_properties("${output}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # its path is that of the build
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DFOLDER=${folder}" "-DHEADER=${ARG_HEADER}" "-DTEXTS=${ARG_TEXTS}"
            -P "${PROJECT_SOURCE_DIR}/tools/cmake/embed_text.cmake"
    DEPENDS ${ARG_FILES} "${PROJECT_SOURCE_DIR}/tools/cmake/embed_text.cmake"
    VERBATIM)
endfunction()
