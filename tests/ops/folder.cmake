# The reader of reference vectors is the verify command's.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa/vectors.cpp)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa)
target_link_libraries(${target} PRIVATE brasa_transforms brasa_io)
