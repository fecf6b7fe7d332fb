#pragma once

#include <brasa/serialize.h>

#include <cstddef>
#include <span>
#include <string>

/// NumPy's files: `.npy` with one array, `.npz` with several by name. `Tensor x = io::load_npy("x.npy");`.
namespace brasa::io {

/// The array, in memory of its own on the CPU. Versions 1.0 to 3.0 of the format, either order of bytes; bool, int8 to int64, uint8, uint64,
/// float16 to float64, complex64 and complex128. What lies in Fortran's order keeps it: the strides ascend. brasa::Error for
/// other dtypes, by their names (objects are pickles, which are programs: they are never read), and for a file that breaks the format
/// or has not exactly the bytes of its array.
BRASA_API Tensor load_npy(const std::string& path);
/// The same of bytes, which `source` names in errors.
BRASA_API Tensor parse_npy(std::span<const std::byte> bytes, const std::string& source = "npy data");
/// What numpy.save writes, on whatever device the tensor lives: column-major tensors in Fortran's order, other views in rows.
/// brasa::Error for an undefined or sparse tensor, and for a dtype that NumPy has not: bfloat16, complex32, float8.
BRASA_API void save_npy(const Tensor& tensor, const std::string& path);

/// The arrays of an archive by name, compressed or not, each as load_npy reads it. brasa::Error also for a checksum that is not
/// its array's, and for a record that is no array.
BRASA_API TensorDict load_npz(const std::string& path);
BRASA_API TensorDict parse_npz(std::span<const std::byte> bytes, const std::string& source = "npz data");
/// What numpy.savez writes: arrays one after the other, not compressed. brasa::Error as save_npy's, with the tensor's name.
BRASA_API void save_npz(const TensorDict& tensors, const std::string& path);

/// What a file of either kind holds, for a person: the dtype and shape of each array, also of those that Brasa cannot read.
BRASA_API std::string describe_npy(const std::string& path);

}  // namespace brasa::io
