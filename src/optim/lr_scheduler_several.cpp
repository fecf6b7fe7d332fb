#include <brasa/optim/lr_scheduler.h>

#include <algorithm>

#include "support/error.h"

// Schedules made of others.
namespace brasa::optim::lr_scheduler {
namespace {

void check_all(const Schedulers& schedulers, const char* name) {
  BRASA_CHECK(!schedulers.empty(), name, ": expected at least one scheduler");
  for (const auto& s : schedulers) BRASA_CHECK(s, name, ": a scheduler is null");
}

void save_all(const Schedulers& schedulers, serialize::OutputArchive& archive) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    serialize::OutputArchive nested;
    schedulers[i]->save(nested);
    archive.write("_schedulers." + std::to_string(i), nested);
  }
}
void load_all(const Schedulers& schedulers, serialize::InputArchive& archive) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    serialize::InputArchive nested;
    archive.read("_schedulers." + std::to_string(i), nested);
    schedulers[i]->load(nested);
  }
}

}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, Schedulers schedulers, std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  check_all(schedulers_, "SequentialLR");
  BRASA_CHECK(schedulers_.size() == milestones_.size() + 1,
              "SequentialLR: expected one scheduler more than milestones, got ", schedulers_.size(), " schedulers and ",
              milestones_.size(), " milestones");
  for (const auto& s : schedulers_)
    BRASA_CHECK(&s->optimizer() == &optimizer, "SequentialLR: a scheduler belongs to another optimizer");
  last_epoch_ = 0;
  // Each of them took its first step when it was made; only the first one's is to last.
  set_optimizer_lrs(base_lrs_);
  undo();
  schedulers_[0]->first_step();
  last_lr_ = schedulers_[0]->get_last_lr();
}
void SequentialLR::advance(std::optional<double> epoch) {
  BRASA_CHECK(!epoch, "SequentialLR: step() takes no epoch");
  ++last_epoch_;
  auto k =
      static_cast<size_t>(std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin());
  if (k > 0 && milestones_[k - 1] == last_epoch_)
    schedulers_[k]->step(0);
  else
    schedulers_[k]->step();
  last_lr_ = schedulers_[k]->get_last_lr();
}
void SequentialLR::undo() {
  for (const auto& s : schedulers_) s->undo();
}
void SequentialLR::save(serialize::OutputArchive& archive) const {
  LRScheduler::save(archive);
  save_all(schedulers_, archive);
}
void SequentialLR::load(serialize::InputArchive& archive) {
  LRScheduler::load(archive);
  load_all(schedulers_, archive);
}

ChainedScheduler::ChainedScheduler(Optimizer& optimizer, Schedulers schedulers)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)) {
  check_all(schedulers_, "ChainedScheduler");
  for (const auto& s : schedulers_)
    BRASA_CHECK(&s->optimizer() == &optimizer, "ChainedScheduler: a scheduler belongs to another optimizer");
  last_epoch_ = 0;
  last_lr_ = get_current_lrs();
}
void ChainedScheduler::advance(std::optional<double> epoch) {
  BRASA_CHECK(!epoch, "ChainedScheduler: step() takes no epoch");
  ++last_epoch_;
  for (const auto& s : schedulers_) s->step();
  last_lr_ = get_current_lrs();
}
void ChainedScheduler::undo() {
  for (const auto& s : schedulers_) s->undo();
}
void ChainedScheduler::save(serialize::OutputArchive& archive) const {
  LRScheduler::save(archive);
  save_all(schedulers_, archive);
}
void ChainedScheduler::load(serialize::InputArchive& archive) {
  LRScheduler::load(archive);
  load_all(schedulers_, archive);
}

}  // namespace brasa::optim::lr_scheduler
