# The pages as brasa-reference writes them.
foreach(source facts example page)
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/reference/${source}.cpp)
endforeach()
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/gen/signature.cpp)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/reference ${CMAKE_SOURCE_DIR}/tools/gen)
