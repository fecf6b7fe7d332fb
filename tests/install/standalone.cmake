# Exports an archive and builds and runs examples/standalone with it, by its CMakeLists.txt and by the one line of cc in its README.
# Takes -DBRASA= -DMODEL= -DSOURCE= -DWORK= -DCC=
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(run_in ${WORK})

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/cmake -G Ninja -DCMAKE_C_COMPILER=${CC} -DMODEL=${MODEL} -DBRASA=${BRASA})
run(${CMAKE_COMMAND} --build ${WORK}/cmake)
run(${WORK}/cmake/classify)
set(first "${output}")
if(NOT first MATCHES "image 4: class .*size 0 is 1000, expected 1 to 128")
  message(FATAL_ERROR "classify printed:\n${first}")
endif()

run(${BRASA} export ${MODEL} -o classifier --kind object)
run(${CC} -Wall -Wextra -Werror -I. ${SOURCE}/main.c classifier.o -pthread -o classify)
run(./classify)
if(NOT output STREQUAL first)
  message(FATAL_ERROR "cc's program printed something else:\n${output}")
endif()
run(ldd ./classify)
string(REGEX REPLACE "[^\n]*(linux-vdso|libc\\.so|libm\\.so|ld-linux)[^\n]*\n?" "" others "${output}")
if(NOT others STREQUAL "")
  message(FATAL_ERROR "it needs more than the C library:\n${others}")
endif()
