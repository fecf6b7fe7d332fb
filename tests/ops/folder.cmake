# Vectors are read and compared as the command does it; samples become calls as the pack's do.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa/vectors.cpp ${CMAKE_SOURCE_DIR}/tools/brasa/files.cpp ${CMAKE_SOURCE_DIR}/tools/brasa/compare.cpp
               ${CMAKE_SOURCE_DIR}/tools/brasa/gauge.cpp ${CMAKE_SOURCE_DIR}/tools/pack/sample_call.cpp)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa ${CMAKE_SOURCE_DIR}/tools)
target_link_libraries(${target} PRIVATE brasa_transforms brasa_io)
