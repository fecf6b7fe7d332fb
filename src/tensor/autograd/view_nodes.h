#pragma once

#include "tensor/autograd/meta.h"
#include "tensor/tensor_impl.h"
#include "tensor/views.h"

// What gradients of views, and of writes through views, go through.
namespace brasa::autograd {

/// Backward of a view: its movements the other way.
class ViewNode final : public Node, public Pooled {
 public:
  ViewNode(const ops::Row& row, std::string name, std::shared_ptr<const eager::ViewPlan> plan)
      : row_(row), name_(std::move(name)), plan_(std::move(plan)) {}
  std::string name() const override { return name_; }
  const ops::Row& row() const { return row_; }
  /// Whether each element of the view has another place in the view than in what it is of.
  bool moves() const;

 protected:
  variable_list apply(variable_list&& grads) override;

 private:
  const ops::Row& row_;
  std::string name_;
  std::shared_ptr<const eager::ViewPlan> plan_;
};

/// Backward of a call that gives several views of one tensor: one gradient of that from all that come.
class ViewsNode final : public Node, public Pooled {
 public:
  ViewsNode(const ops::Row& row, std::string name, const Tensor& of, std::shared_ptr<const eager::ArgStore> args,
            std::vector<std::shared_ptr<const eager::ViewPlan>> plans)
      : row_(row),
        name_(std::move(name)),
        sizes_(impl_of(of)->sizes),
        dtype_(of.scalar_type()),
        args_(std::move(args)),
        plans_(std::move(plans)) {}
  std::string name() const override { return name_; }

 protected:
  variable_list apply(variable_list&& grads) override;

 private:
  const ops::Row& row_;
  std::string name_;
  Sizes sizes_;  // of the tensor
  DType dtype_;
  std::shared_ptr<const eager::ArgStore> args_;
  std::vector<std::shared_ptr<const eager::ViewPlan>> plans_;
};

/// Backward of as_strided over the memory behind a tensor: the memory's gradient, at the tensor's elements.
class MemoryView final : public Node {
 public:
  MemoryView(const TensorImpl& view, const TensorImpl& self)
      : extent_(static_cast<int64_t>(self.storage->bytes()) / size_of(self.dtype)), view_(view), self_(self) {}
  std::string name() const override { return "AsStridedBackward0"; }

 protected:
  variable_list apply(variable_list&& grads) override;

 private:
  struct Geometry {
    explicit Geometry(const TensorImpl& t) : sizes(t.sizes.vec()), strides(t.strides.vec()), offset(t.offset) {}
    std::vector<CallArg> arguments(const Tensor& memory) const { return {memory, sizes, strides, offset}; }
    std::vector<int64_t> sizes, strides;
    int64_t offset;
  };
  int64_t extent_;
  Geometry view_, self_;
};

/// Backward of a write into a view, seen from the base: the view's part of the gradient goes through the write.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, std::shared_ptr<const eager::ViewLink> view, std::shared_ptr<Node> write,
             size_t self_edge)
      : strides_(impl_of(base)->strides), view_(std::move(view)), write_(std::move(write)), self_edge_(self_edge) {}
  std::string name() const override { return "torch::autograd::CopySlices"; }
  /// The position of the base among the edges.
  size_t self_edge() const { return self_edge_; }

 protected:
  variable_list apply(variable_list&& grads) override;
  void release_variables() override {
    // Derivatives of its derivative may lead to the write itself.
    if (write_.use_count() == 1) NodeAccess::release(*write_);
    write_.reset();
    internals_->released = true;
  }
  void for_each_saved(const std::function<void(const Tensor&)>& f) const override {
    if (write_) NodeAccess::for_each_saved(*write_, f);
  }
  const Node* inner() const override { return write_.get(); }

 private:
  Sizes strides_;  // of the base
  std::shared_ptr<const eager::ViewLink> view_;
  std::shared_ptr<Node> write_;
  size_t self_edge_;
};

}  // namespace brasa::autograd
