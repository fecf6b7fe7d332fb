#pragma once

#include <string>

#include "interpreted.h"

namespace brasa::test {

/// A row's sample as a call: tensors get deterministic values in their range. With `wide`, floating tensors become float64
/// and ask for gradients.
Call sample_call(const ops::Row& row, const ops::Sample& sample, bool wide);

/// The same without the count that a row whose results' size depends on data takes besides; and a call with it.
Call plain_call(const ops::Row& row, const ops::Sample& sample, bool wide);
Call counted(Call call);
/// The first sample as a plain call.
Call first_call(const ops::Row& row);
/// One tensor of a sample alone.
ops::Array sample_array(const ops::TensorSample& sample);

/// The names of all rows but the primitives.
std::vector<std::string> composed_rows();

/// A row's name as a name of a test.
std::string test_name(const std::string& row);

}  // namespace brasa::test
