# Archives are files of src/io.
target_link_libraries(${target} PRIVATE brasa_optim brasa_io)
