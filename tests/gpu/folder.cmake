# The step that the demo trains with.
set(demo ${CMAKE_SOURCE_DIR}/examples/vit_digits)
set(models ${CMAKE_SOURCE_DIR}/examples/models)
target_sources(${target} PRIVATE ${demo}/train.cpp ${demo}/digits.cpp ${models}/vit.cpp ${models}/blocks.cpp ${models}/gpt.cpp ${models}/resnet.cpp)
target_include_directories(${target} PRIVATE ${demo} ${CMAKE_SOURCE_DIR}/examples)
target_compile_definitions(${target} PRIVATE DEMO_DATA="${demo}/digits.csv.gz")
target_link_libraries(${target} PRIVATE ZLIB::ZLIB Threads::Threads)
