# The reader of reference vectors is the verify command's.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa/vectors.cpp ${CMAKE_SOURCE_DIR}/tools/brasa/run_graph.cpp)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa)
target_link_libraries(${target} PRIVATE brasa_transforms brasa_io)
