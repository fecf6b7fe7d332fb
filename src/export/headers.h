#pragma once

#include <string>

#include "export/words.h"

namespace brasa::exporting {

/// The text of NAME.h.
std::string c_header(const std::string& name, const std::vector<InputType>& inputs,
                     const std::vector<OutputType>& outputs, const std::vector<StateTensor>& state,
                     const Sections& sections);
/// NAME.hpp: the same as a class; `gpu`: tensors are in a GPU's memory.
std::string cpp_header(const std::string& name, const std::string& c_header_file, bool gpu);

}  // namespace brasa::exporting
