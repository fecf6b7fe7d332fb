#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include <brasa/optim.h>
#include <brasa/tensor.h>

// What the training references are made of: models, optimizers and schedules by the names and arguments of Python's.
namespace brasa::verify {

using Parameters = std::map<std::string, Tensor>;

/// The loss of a model of the references ("mlp" with its activation and loss, "vit") on one batch.
Tensor training_loss(const nlohmann::json& model, const Parameters& parameters, const Tensor& x, const Tensor& target);

/// torch.optim's class of this name; brasa::Error for a class or an argument that does not exist.
std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, const nlohmann::json& args,
                                                 const std::vector<Tensor>& parameters);

/// torch.optim.lr_scheduler's class of this name, except ReduceLROnPlateau.
std::shared_ptr<optim::lr_scheduler::LRScheduler> make_schedule(const std::string& name, const nlohmann::json& args,
                                                                optim::Optimizer& optimizer);
std::unique_ptr<optim::lr_scheduler::ReduceLROnPlateau> make_plateau(const nlohmann::json& args,
                                                                     optim::Optimizer& optimizer);

}  // namespace brasa::verify
