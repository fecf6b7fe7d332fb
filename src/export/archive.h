#pragma once

#include <string>
#include <vector>

#include "export/captured.h"
#include "export/state.h"
#include "export/words.h"

namespace brasa::exporting {

/// Writes a recorded function as an archive that torch.export.load takes. Parameters and buffers are those of `named`; what the function reads
/// besides becomes constants. brasa::Error where the graph holds for other sizes than `inputs` say, and for an operator that PyTorch has not.
void write_archive(const std::string& path, const Captured& captured, const std::vector<InputType>& inputs,
                   const std::vector<NamedTensor>& named);

}  // namespace brasa::exporting
