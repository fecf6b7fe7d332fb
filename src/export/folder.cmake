# What exported programs are made of besides their kernels: compiled here, carried by the library as bytes (embedded.cpp). Flags are
# these alone: no sanitizer and no option of this build goes into a user's program. Where there is no compiler for other processors, the
# objects are empty, and the library says so. `calling`: the runtime with the functions that some programs call (call.h, libraries.h). `cuda`: the same whose device is a GPU. Not vectorized: products of 64 bits are slow as vectors of any x86-64 (weights.h: 3 times).
set(alone ${CMAKE_SOURCE_DIR}/src/export/alone)
set(made ${CMAKE_BINARY_DIR}/export)
find_program(BRASA_AARCH64_CC aarch64-linux-gnu-gcc DOC "makes programs for AArch64; Debian: gcc-aarch64-linux-gnu with libc6-dev-arm64-cross")
set(objects "")
foreach(processors x86-64 aarch64 cuda)
  set(compiler ${CMAKE_C_COMPILER})
  set(parts runtime calling main)
  set(device "")
  if(processors STREQUAL aarch64)
    set(compiler ${BRASA_AARCH64_CC})
  elseif(processors STREQUAL cuda)
    set(device -DALONE_CUDA)
  endif()
  file(MAKE_DIRECTORY ${made}/${processors})
  foreach(part ${parts})
    set(source ${part})
    set(calls "")
    if(part STREQUAL calling)
      set(source runtime)
      set(calls -DALONE_CALLS)
    endif()
    set(object ${made}/${processors}/${part}.o)
    list(APPEND objects ${object})
    if(NOT compiler)
      add_custom_command(OUTPUT ${object} COMMAND ${CMAKE_COMMAND} -E touch ${object} VERBATIM)
      continue()
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${compiler} -std=gnu11 -O2 -fno-tree-vectorize -fno-math-errno -g0 -fPIC -ffunction-sections -Wall -Wextra -Werror ${device} ${calls} -I${CMAKE_SOURCE_DIR}/src -c ${alone}/${source}.c
              -o ${object}
      DEPENDS ${alone}/${source}.c ${alone}/runtime.h ${alone}/sizes.h ${alone}/run.h ${alone}/steps.h ${alone}/host.h ${alone}/cuda.h ${alone}/call.h ${alone}/libraries.h ${alone}/cublaslt.h ${alone}/cudnn.h ${alone}/sort.h ${alone}/fourier.h ${alone}/matrix.h ${alone}/spectral.h ${alone}/weights.h ${alone}/program.h ${alone}/safetensors.h ${alone}/npy.h
      COMMENT "Compiling ${part}.c for exported programs on ${processors}"
      VERBATIM)
  endforeach()
endforeach()
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/export/embedded.cpp
  PROPERTIES OBJECT_DEPENDS "${objects};${alone}/program.h" COMPILE_DEFINITIONS "ALONE_FOLDER=\"${made}\";ALONE_PROGRAM=\"${alone}/program.h\"")
# The part of them that this library runs itself.
target_sources(${target} PRIVATE ${alone}/tables.c)
set_source_files_properties(${alone}/tables.c PROPERTIES SKIP_PRECOMPILE_HEADERS ON OBJECT_DEPENDS ${alone}/fourier.h)
