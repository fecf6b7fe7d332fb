#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <brasa/pickle.h>
#include <brasa/safetensors.h>
#include <brasa/serialize/archive.h>
#include <brasa/tensor.h>

namespace brasa::io {

/// A tensor of a safetensors file, on the entry's bytes if `owner` keeps them alive, else on a copy.
Tensor tensor_of(const safetensors::Entry& entry, const std::string& source,
                 const std::shared_ptr<const void>& owner = nullptr);

/// Whether a file that is no safetensors file begins like a checkpoint or an archive of LibTorch's.
bool looks_like_checkpoint(std::span<const std::byte> bytes);
/// What an archive is read from: the tensors of a checkpoint's dictionary, or those of the objects that LibTorch's `torch::save`
/// writes, below the names of their attributes, with the numbers and texts beside them.
serialize::Contents contents_of_checkpoint(std::span<const std::byte> bytes, const std::string& source);
serialize::Contents contents_of_value(const pickle::Value& root, size_t file_bytes, const std::string& source);
/// Whether the value is an optimizer of LibTorch's; what Brasa's own is read from.
bool is_libtorch_optimizer(const pickle::Value& root);
serialize::Contents contents_of_optimizer(const pickle::Value& root, size_t file_bytes, const std::string& source);

/// What LibTorch's `torch::load` reads. `target` names the archive in errors.
void write_script_archive(const serialize::Contents& contents, const std::string& target,
                          const std::function<void(const void*, size_t)>& sink);
/// Whether the contents are an optimizer's, and the object that LibTorch's archives have for it, whose parts have no classes yet.
bool is_optimizer(const serialize::Contents& contents);
pickle::Value libtorch_optimizer(const serialize::Contents& contents, const std::string& target);

}  // namespace brasa::io
