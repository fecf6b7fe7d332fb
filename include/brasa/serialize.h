#pragma once

#include <concepts>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <brasa/containers.h>
#include <brasa/ordered_dict.h>
#include <brasa/safetensors.h>
#include <brasa/serialize/archive.h>

/// `save(model, "net.safetensors")`, `load(model, "net.safetensors")`; also optimizers, single tensors, lists and dictionaries of them.
namespace brasa {

using TensorDict = std::map<std::string, Tensor>;

/// Tensors by name and the file's metadata. `path` names a safetensors file; the index of one that is split over several
/// (`model.safetensors.index.json`); or a checkpoint of PyTorch that is a dictionary of tensors, as a module's state_dict;
/// or a TorchScript archive, whose tensors have dotted names and whose code is not run. Those of
/// a checkpoint share memory where they did, others have memory of their own. brasa::Error for a file that breaks its format or has
/// a dtype that Brasa has not.
BRASA_API TensorDict load_tensors(const std::string& path, safetensors::Metadata* metadata = nullptr);
/// The same without a copy: their memory is the mapped files', of which only what is used is read. What is written to them stays in this
/// process. The files must keep their size meanwhile.
BRASA_API TensorDict map_tensors(const std::string& path, safetensors::Metadata* metadata = nullptr);
/// The tensors' values; views become contiguous. brasa::Error for what cannot be written.
BRASA_API void save_tensors(const TensorDict& tensors, const std::string& path,
                            const safetensors::Metadata& metadata = {});

/// Anything that has `archive << value` (modules and their holders, optimizers, samplers) or `save` and `load` of its own (schedules of
/// learning rates, amp::GradScaler). `to`: a path, a stream or a function that
/// takes pieces of bytes. An optimizer in LibTorch's form has what LibTorch's have: brasa::Error for `maximize` and for a rate that is a tensor.
template <class T, class To>
  requires(
      requires(serialize::OutputArchive& archive, const T& value) { archive << value; } ||
      requires(serialize::OutputArchive& archive, const T& value) { value.save(archive); })
void save(const T& value, To&& to, serialize::Form form = serialize::Form::Safetensors) {
  serialize::OutputArchive archive;
  if constexpr (requires { archive << value; })
    archive << value;
  else
    value.save(archive);
  archive.save_to(std::forward<To>(to), form);
}
/// `from`: a path, a stream, bytes and their count, or functions that read (see InputArchive::load_from); then a device.
template <class T, class... From>
  requires(
      requires(serialize::InputArchive& archive, T& value) { archive >> value; } ||
      requires(serialize::InputArchive& archive, T& value) { value.load(archive); })
void load(T& value, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  if constexpr (requires { archive >> value; })
    archive >> value;
  else
    value.load(archive);
}

/// A value as LibTorch's `pickle_save` and Python's `torch.save` write it, in memory: None, numbers, texts, devices, tensors, and tuples, lists and
/// dictionaries of them (<brasa/containers.h>). A list that was made of one type keeps it, for LibTorch; Python's `torch.load` takes such a
/// file with `weights_only=False` alone.
BRASA_API std::vector<char> pickle_save(const IValue& value);
/// brasa::Error for what is malformed, and for what has no form as an IValue, by its name (see <brasa/pickle.h> for all that a file may hold).
BRASA_API IValue pickle_load(const std::vector<char>& data);

// A tensor is stored under the name "0", those of a list under their index.
BRASA_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Tensor& tensor);
BRASA_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, Tensor& tensor);
BRASA_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const std::vector<Tensor>& tensors);
BRASA_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, std::vector<Tensor>& tensors);
BRASA_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                               const OrderedDict<std::string, Tensor>& tensors);

}  // namespace brasa
