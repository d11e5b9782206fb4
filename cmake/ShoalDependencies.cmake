# SPDX-License-Identifier: Apache-2.0
# What Shoal needs from the distribution. A required package that is missing stops here with its Debian name; optional ones are
# reported and switch off what needs them.
include_guard(GLOBAL)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

if(SHOAL_TRAIN)
  # BLIS without threads: a rank has one core. Debian keeps the variants in folders of their own; which one the plain name libblis
  # means is up to update-alternatives, when building and again when running, so the archive is named here and linked statically.
  find_path(BLIS_SERIAL_INCLUDE cblas.h PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/blis-serial NO_DEFAULT_PATH
            DOC "Folder of the cblas.h of a BLIS without threads")
  find_library(BLIS_SERIAL_LIBRARY libblis.a PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/blis-serial NO_DEFAULT_PATH
               DOC "A BLIS without threads, with CBLAS")
  find_package(ZLIB)
  if(BLIS_SERIAL_INCLUDE AND BLIS_SERIAL_LIBRARY AND ZLIB_FOUND)
    add_library(shoal_cblas INTERFACE)
    target_include_directories(shoal_cblas SYSTEM INTERFACE ${BLIS_SERIAL_INCLUDE})
    target_link_libraries(shoal_cblas INTERFACE ${BLIS_SERIAL_LIBRARY} Threads::Threads m)
  else()
    message(WARNING "serial BLIS with CBLAS (Debian: libblis-serial-dev; else set BLIS_SERIAL_INCLUDE and BLIS_SERIAL_LIBRARY) or zlib "
                    "(Debian: zlib1g-dev) not found: shoal-train is not built")
    set(SHOAL_TRAIN OFF)
  endif()
endif()
if(SHOAL_BENCHMARKS)
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    message(WARNING "Google Benchmark not found (Debian: libbenchmark-dev): micro-benchmarks are not built")
    set(SHOAL_BENCHMARKS OFF)
  endif()
endif()
if(SHOAL_TESTS)
  find_package(Catch2 2 REQUIRED)
endif()
