# SPDX-License-Identifier: Apache-2.0
# How Shoal's targets are made: shoal_library, shoal_program, shoal_test, shoal_fuzzer.
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(shoal_flags INTERFACE)
target_compile_options(shoal_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
                       -Wno-missing-field-initializers)  # members left out of a designated initializer have defaults
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(shoal_flags INTERFACE -Wno-restrict)  # GCC 12 sees overlaps in std::string that are not there
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(shoal_flags INTERFACE -Wthread-safety)
endif()
if(SHOAL_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # instrumented code leads GCC's flow analysis astray; the plain build has these warnings
    target_compile_options(shoal_flags INTERFACE -Wno-stringop-overflow -Wno-maybe-uninitialized -Wno-array-bounds -Wno-tsan)
  endif()
  target_compile_options(shoal_flags INTERFACE -fsanitize=${SHOAL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(shoal_flags INTERFACE -fsanitize=${SHOAL_SANITIZE})
endif()

# shoal_library(NAME SOURCES file... LINKS target...): the target of one folder, named shoal_NAME. Includes are written from
# the top of the tree ("src/core/types.h" is "core/types.h").
function(shoal_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE" ${ARGN})
  add_library(shoal_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(shoal_${name} PUBLIC ${ARG_LINKS} PRIVATE shoal_flags ${ARG_PRIVATE})
  target_include_directories(shoal_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
endfunction()

# shoal_vector_code(TARGET): a library of Highway kernels, compiled for AVX-512, AVX2 and the compiler's baseline. One between them
# would serve no machine that trains today and lengthen the build; a source that gains by AVX-512's later parts asks for them too
# (HWY_WANT_AVX3_DL). Sizeless vectors (SVE, RVV) cannot be members of a struct, which the kernels need. No multiplication is fused with an addition: the same bits with every instruction set.
function(shoal_vector_code target)
  set(disabled "HWY_SSSE3|HWY_SSE4|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV")
  if(SHOAL_SANITIZE)
    string(APPEND disabled "|HWY_AVX3")  # the same source again: minutes of compilation, nothing new to find
  endif()
  target_link_libraries(${target} PRIVATE shoal_highway)
  if(NOT target STREQUAL shoal_device)
    target_link_libraries(${target} PRIVATE shoal_device)
  endif()
  target_compile_definitions(${target} PRIVATE "HWY_DISABLED_TARGETS=(${disabled})")
  target_compile_options(${target} PRIVATE -ffp-contract=off)
endfunction()

# shoal_program(NAME SOURCES file... LINKS target...): a program in bin/, using Shoal as any user does.
function(shoal_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE shoal_flags ${ARG_LINKS})
endfunction()

# shoal_test(NAME SOURCES file... LINKS target... [TIMEOUT seconds] [LABELS label...]): one Catch2 binary, one ctest entry.
function(shoal_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE shoal_flags shoal_catch_main ${ARG_LINKS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bin)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(thread_tests ${name})
  endif()
endfunction()

# shoal_tests_open_ucx(TEST...): LeakSanitizer, which stops all threads at the end of a process, falls over those of the real library.
function(shoal_tests_open_ucx)
  set_tests_properties(${ARGN} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
endfunction()

# shoal_fuzzer(NAME SOURCES file... LINKS target...): a libFuzzer binary in bin/ (with SHOAL_FUZZERS).
function(shoal_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  if(NOT SHOAL_FUZZERS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE shoal_flags ${ARG_LINKS} -fsanitize=fuzzer)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()

# shoal_summary(): what was found and what is built, at the end of the configuration.
function(shoal_summary)
  message(STATUS "shoal ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, sanitizers: ${SHOAL_SANITIZE}, tests: ${SHOAL_TESTS}, training: ${SHOAL_TRAIN}, "
                 "benchmarks: ${SHOAL_BENCHMARKS}, fuzzers: ${SHOAL_FUZZERS}, ccache: ${CCACHE}")
endfunction()
