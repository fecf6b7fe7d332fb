target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/compat/torch)
