target_link_libraries(${target} PRIVATE brasa_models)
