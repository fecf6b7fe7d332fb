# What exported programs are made of besides their kernels: compiled here, carried by the library as bytes (embedded.cpp). Flags are
# these alone: no sanitizer and no option of this build goes into a user's program. Where there is no compiler for other processors, the
# objects are empty, and the library says so. Not vectorized: products of 64 bits are slow as vectors of any x86-64 (weights.h: 3 times).
set(alone ${CMAKE_SOURCE_DIR}/src/export/alone)
set(made ${CMAKE_BINARY_DIR}/export)
find_program(BRASA_AARCH64_CC aarch64-linux-gnu-gcc DOC "makes programs for AArch64; Debian: gcc-aarch64-linux-gnu with libc6-dev-arm64-cross")
set(objects "")
foreach(processors x86-64 aarch64)
  set(compiler ${CMAKE_C_COMPILER})
  if(processors STREQUAL aarch64)
    set(compiler ${BRASA_AARCH64_CC})
  endif()
  file(MAKE_DIRECTORY ${made}/${processors})
  foreach(part runtime main)
    set(object ${made}/${processors}/${part}.o)
    list(APPEND objects ${object})
    if(NOT compiler)
      add_custom_command(OUTPUT ${object} COMMAND ${CMAKE_COMMAND} -E touch ${object} VERBATIM)
      continue()
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${compiler} -std=gnu11 -O2 -fno-tree-vectorize -fno-math-errno -g0 -fPIC -ffunction-sections -Wall -Wextra -Werror -I${CMAKE_SOURCE_DIR}/src -c ${alone}/${part}.c
              -o ${object}
      DEPENDS ${alone}/${part}.c ${alone}/runtime.h ${alone}/steps.h ${alone}/call.h ${alone}/sort.h ${alone}/fourier.h ${alone}/matrix.h ${alone}/spectral.h ${alone}/weights.h ${alone}/program.h ${alone}/safetensors.h ${alone}/npy.h
      COMMENT "Compiling ${part}.c for exported programs on ${processors}"
      VERBATIM)
  endforeach()
endforeach()
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/export/embedded.cpp
  PROPERTIES OBJECT_DEPENDS "${objects};${alone}/program.h" COMPILE_DEFINITIONS "ALONE_FOLDER=\"${made}\";ALONE_PROGRAM=\"${alone}/program.h\"")
