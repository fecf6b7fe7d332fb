# The command looks into internals (the operator table, the interpreter), so it links the folders instead of the library.
set_target_properties(${target} PROPERTIES LINK_LIBRARIES "")
brasa_sees_sources(${target})
target_link_libraries(${target} PRIVATE $<TARGET_NAME_IF_EXISTS:brasa_models> ${BRASA_TARGETS} fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11 ZLIB::ZLIB)
