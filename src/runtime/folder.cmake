# Where CUDA's headers are installed, what cuda/ declares in its own words is checked against them; nothing else depends on them.
find_path(BRASA_CUDA_HEADERS cuda.h HINTS $ENV{CUDA_HOME} /usr/local/cuda PATH_SUFFIXES include)
mark_as_advanced(BRASA_CUDA_HEADERS)
if(BRASA_CUDA_HEADERS)
  foreach(file cublaslt device driver)
    set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/runtime/cuda/${file}.cpp APPEND PROPERTY COMPILE_OPTIONS
                 -isystem${BRASA_CUDA_HEADERS})
  endforeach()
endif()
