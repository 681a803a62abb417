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
  # With sanitizers GCC 12 takes variables of <regex> and <optional> for uninitialized that are not.
  target_compile_options(windtunnel_build_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(WINDTUNNEL_FUZZ)
  target_compile_options(windtunnel_build_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(windtunnel_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;EXTERNAL" ${ARGN})
  add_library(windtunnel_${name} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND windtunnel_)
  target_link_libraries(windtunnel_${name} PUBLIC windtunnel_options ${ARG_DEPENDS}
                        PRIVATE ${ARG_EXTERNAL})
endfunction()

function(windtunnel_layer_test name)
  if(NOT doctest_FOUND)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;EXTERNAL" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND windtunnel_)
  add_executable(windtunnel_${name}_test ${ARG_SOURCES} "${PROJECT_SOURCE_DIR}/tools/cmake/doctest_main.cpp")
  target_link_libraries(windtunnel_${name}_test PRIVATE windtunnel_${name} ${ARG_DEPENDS}
                        doctest::doctest ${ARG_EXTERNAL})
  target_compile_definitions(windtunnel_${name}_test PRIVATE
    WINDTUNNEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  doctest_discover_tests(windtunnel_${name}_test TEST_PREFIX "${name}: " PROPERTIES LABELS unit)
endfunction()

function(windtunnel_layer_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT benchmark_FOUND)
    return()
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND windtunnel_)
  add_executable(windtunnel_${name}_bench ${ARG_SOURCES})
  target_link_libraries(windtunnel_${name}_bench PRIVATE windtunnel_${name} ${ARG_DEPENDS}
                        benchmark::benchmark)
  target_compile_definitions(windtunnel_${name}_bench PRIVATE
    WINDTUNNEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# Files of the folder's html/ as string literals in `output`: TEXTS are name=file or name=file+file (embed_text.cmake).
function(windtunnel_embed output)
  cmake_parse_arguments(ARG "" "" "FILES;TEXTS" ${ARGN})
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}/html")
  list(TRANSFORM ARG_FILES PREPEND "${folder}/")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DFOLDER=${folder}" "-DTEXTS=${ARG_TEXTS}"
            -P "${PROJECT_SOURCE_DIR}/tools/cmake/embed_text.cmake"
    DEPENDS ${ARG_FILES} "${PROJECT_SOURCE_DIR}/tools/cmake/embed_text.cmake"
    VERBATIM)
endfunction()
