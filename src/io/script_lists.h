#pragma once

#include <string_view>
#include <utility>

#include <brasa/pickle.h>

namespace brasa::io {

/// TorchScript's functions that make a list of one type, and the kind of its elements.
inline constexpr std::pair<std::string_view, pickle::Value::Kind> kScriptLists[] = {
    {"torch.jit._pickle.build_intlist", pickle::Value::Kind::Int},
    {"torch.jit._pickle.build_doublelist", pickle::Value::Kind::Float},
    {"torch.jit._pickle.build_boollist", pickle::Value::Kind::Bool},
    {"torch.jit._pickle.build_tensorlist", pickle::Value::Kind::Tensor},
};

}  // namespace brasa::io
