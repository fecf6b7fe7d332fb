# What exported programs are made of besides their kernels: compiled here, carried by the library as bytes (embedded.cpp). Flags are
# these alone: no sanitizer and no option of this build goes into a user's program.
set(alone ${CMAKE_SOURCE_DIR}/src/export/alone)
set(made ${CMAKE_BINARY_DIR}/export)
file(MAKE_DIRECTORY ${made})
foreach(part runtime main)
  add_custom_command(
    OUTPUT ${made}/${part}.o
    COMMAND ${CMAKE_C_COMPILER} -std=gnu11 -O2 -g0 -fPIC -ffunction-sections -Wall -Wextra -Werror -I${CMAKE_SOURCE_DIR}/src -c ${alone}/${part}.c
            -o ${made}/${part}.o
    DEPENDS ${alone}/${part}.c ${alone}/runtime.h ${alone}/program.h ${alone}/safetensors.h ${alone}/npy.h
    COMMENT "Compiling ${part}.c for exported programs"
    VERBATIM)
endforeach()
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/export/embedded.cpp
  PROPERTIES OBJECT_DEPENDS "${made}/runtime.o;${made}/main.o;${alone}/program.h" COMPILE_DEFINITIONS
             "ALONE_RUNTIME=\"${made}/runtime.o\";ALONE_MAIN=\"${made}/main.o\";ALONE_PROGRAM=\"${alone}/program.h\"")
