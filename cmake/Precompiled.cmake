# Headers that nearly every unit includes, compiled once: parsing them is a fourth of a unit's time. None is the project's own, so that a
# change of one of these rebuilds no more than what includes it.
set(BRASA_PRECOMPILED
    <algorithm> <array> <atomic> <cmath> <complex> <cstdint> <cstring> <filesystem> <functional> <limits> <map> <memory> <mutex> <optional>
    <random> <set> <span> <sstream> <string> <string_view> <tuple> <unordered_map> <unordered_set> <utility> <vector>)

# `name`: what the targets that take these headers name in target_precompile_headers(… REUSE_FROM name).
function(brasa_precompiled name)
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp.new "")
  file(COPY_FILE ${CMAKE_BINARY_DIR}/${name}.cpp.new ${CMAKE_BINARY_DIR}/${name}.cpp ONLY_IF_DIFFERENT)
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_precompile_headers(${name} PRIVATE ${BRASA_PRECOMPILED} ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # A time inside would make a compiler cache miss.
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
brasa_precompiled(brasa_headers)
if(BRASA_RUNS_ONCE)
  brasa_precompiled(brasa_row_headers)
  target_compile_options(brasa_row_headers PRIVATE ${BRASA_RUNS_ONCE})
endif()
