# Libraries that stand in for NVIDIA's, under their names.
set(fakes ${CMAKE_BINARY_DIR}/tests/fakes)
foreach(fake driver:libcuda.so.1 cublaslt:libcublasLt.so.13 cudnn:libcudnn.so.9)
  string(REPLACE ":" ";" fake ${fake})
  list(GET fake 0 source)
  list(GET fake 1 file)
  add_library(fake_${source} MODULE ${CMAKE_SOURCE_DIR}/tests/fakes/${source}.cpp)
  if(source STREQUAL driver)
    target_sources(fake_${source} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fakes/ptx.cpp ${CMAKE_SOURCE_DIR}/tests/fakes/ptx_instructions.cpp
                   ${CMAKE_SOURCE_DIR}/tests/fakes/ptx_tensor_cores.cpp ${CMAKE_SOURCE_DIR}/tests/fakes/ptx_copies.cpp
                   ${CMAKE_SOURCE_DIR}/src/runtime/image.cpp)
  endif()
  target_link_options(fake_${source} PRIVATE -Wl,-soname,${file})
  brasa_sees_sources(fake_${source})
  target_link_libraries(fake_${source} PRIVATE brasa_support)
  set_target_properties(fake_${source} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${file} LIBRARY_OUTPUT_DIRECTORY ${fakes})
  add_dependencies(${target} fake_${source})
endforeach()
target_compile_definitions(${target} PRIVATE BRASA_FAKES="${fakes}")

# Programs of LibTorch.
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/compat/torch)
if(BRASA_SANITIZE)
  target_compile_definitions(${target} PRIVATE BRASA_SANITIZED)
endif()
