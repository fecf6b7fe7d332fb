# A user's view: installs into a fresh prefix, then builds and runs examples/hello against it, once as a CMake project with
# find_package(Brasa), once with nothing but pkg-config.
# Takes -DBUILD= -DSOURCE= -DCXX= -DWORK= -DLIBDIR=
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# The tree could lend an installed library what its own prefix lacks.
run(${CMAKE_COMMAND} -E rename ${WORK}/prefix ${WORK}/moved)
set(prefix ${WORK}/moved)

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/cmake -G Ninja -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${WORK}/cmake)
run(${WORK}/cmake/hello)
set(first "${output}")
message("${first}")

set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
run(pkg-config --cflags --libs brasa)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CXX} ${SOURCE}/main.cpp -o ${WORK}/hello ${flags})
run(${WORK}/hello)
if(NOT output STREQUAL first)
  message(FATAL_ERROR "pkg-config's program printed something else:\n${output}")
endif()
