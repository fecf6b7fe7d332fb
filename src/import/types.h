#pragma once

#include <cstdint>
#include <string>

#include <brasa/brasa.h>

#include "io/stored_dtype.h"

// The numbers that an archive has for dtypes, layouts and memory formats (torch/_export/serde/schema.py).
namespace brasa::import {

/// As it is stored; brasa::Error for a number that no dtype has.
io::StoredDType stored_dtype_of_archive(int64_t number, const std::string& source);
/// brasa::Error for a dtype that Brasa has not.
DType dtype_of_archive(int64_t number, const std::string& source);
Layout layout_of_archive(int64_t number, const std::string& source);
MemoryFormat memory_format_of_archive(int64_t number, const std::string& source);

/// The other way.
int64_t archive_number_of(DType dtype);
int64_t archive_number_of(Layout layout);

}  // namespace brasa::import
