# Vectors are read and compared as the command does it.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa/vectors.cpp ${CMAKE_SOURCE_DIR}/tools/brasa/compare.cpp
               ${CMAKE_SOURCE_DIR}/tools/brasa/gauge.cpp)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa)
target_link_libraries(${target} PRIVATE brasa_transforms brasa_io)
