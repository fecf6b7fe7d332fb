# Compiler and linker settings common to every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/archives)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

find_program(BRASA_CCACHE ccache)
if(BRASA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the checkout, so that a second clone or build folder finds what the first one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
      ${BRASA_CCACHE})
endif()

# The code generator links static LLVM, which takes GNU ld ten times as long.
find_program(BRASA_LLD ld.lld)
find_program(BRASA_GOLD ld.gold)
if(BRASA_LLD)
  add_link_options(-fuse-ld=lld)
elseif(BRASA_GOLD)
  add_link_options(-fuse-ld=gold)
endif()

add_compile_options(-Wall -Wextra)
if(BRASA_WERROR)
  add_compile_options(-Werror)
endif()
# Contraction would let the reference interpreter's results depend on the machine it was compiled for.
add_compile_options(-ffp-contract=off -ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections -Wl,--as-needed)

if(BRASA_SANITIZE)
  # Of C++ alone: the compiler for C may be another one, whose sanitizers' runtime is not this one's.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${BRASA_SANITIZE};-fno-sanitize-recover=all>" -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${BRASA_SANITIZE})
  # Rows, modules, programs and tests are the most code and run once: optimizing them takes longer than it saves. Tables of their lines
  # for reports would take a third of the time to compile them.
  set(BRASA_RUNS_ONCE -O0 -g0)
  set(BRASA_TEST_FLAGS ${BRASA_RUNS_ONCE})
  # Each library declares DLPack's structs under names of its own, so their deleters are of types that differ by name alone.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND BRASA_SANITIZE MATCHES "undefined")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=function>)
  endif()
else()
  set(BRASA_TEST_FLAGS -O1)  # tests compile in a third less time than with -O2
  # The sanitizers' own symbols come from the program, so only other builds can ask for complete shared libraries.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-Wl,-z,defs>
                   $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>:-Wl,-z,defs>)
endif()
