# Whole models and their training steps.
target_link_libraries(${target} PRIVATE brasa_nn brasa_optim brasa_func)
