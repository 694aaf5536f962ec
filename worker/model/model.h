// A model is a pure function: (input, parameters, buffers, mode) -> logits. It owns no tensor, so
// the engine can lay parameters out in one flat buffer, and give every slot buffers of its own.
//
// INVARIANTS
//  M1 parameters() and buffers() are fixed at creation, in registration order, and named as the
//     same model written in PyTorch would name them.
//  M2 What forward() gives depends on its arguments alone. In training mode it updates the buffers
//     it was given, in place. A model from a file may draw from LibTorch's generator for the CPU,
//     which is seeded from mode.dropout_key first.
//
// Thread-safety: forward() from any thread, on tensors of that thread. Those of models from files
// wait for each other, whatever the model: the generator is the process's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "data/dataset/sample_shape.h"
#include "worker/cuda/layer_kernels.h"
#include "worker/model/spec.h"

namespace lockstep {

struct ForwardMode {
  // Gets the output of every layer that has parameters, by the index of the first of them.
  using Observer = std::function<void(uint32_t parameter, const at::Tensor& output)>;

  bool training = false;
  uint64_t dropout_key = 0;                  // of this slot of this step; see dropout_mask.h
  const uint64_t* dropout_key_at = nullptr;  // the same where kernels read it, until after backward
  const Observer* observer = nullptr;        // for looking into a step; null while training
  LayerKernels kernels = {};                 // of the device; not taken with an observer
};

class Model {
 public:
  virtual ~Model() = default;

  const ModelLayout& layout() const { return layout_; }

  // x: (B, C, H, W) floats, or (B, T) int64 token ids, or (B, 2, T) token ids and the position of
  // each in its document, where SampleShape::has_positions. Returns logits: (B, classes), or
  // (B, T, classes). `parameters` and `buffers` by index of layout().
  virtual at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> parameters,
                             std::span<const at::Tensor> buffers,
                             const ForwardMode& mode) const = 0;

  // Whether backward reads the logits, so that nobody may write to them before it.
  virtual bool keeps_logits() const { return true; }

 protected:
  explicit Model(ModelLayout layout) : layout_(std::move(layout)) {}

 private:
  ModelLayout layout_;
};

// kUsage for an unknown name (the nearest is named), a bad setting or samples of the other kind,
// kConfig when the images are too small for the model. Of a model from a file see builtin.h.
Result<std::unique_ptr<Model>> make_model(const wire::ModelSpec& spec,
                                          const data::SampleShape& shape, uint32_t classes);

// A view of a batch's inputs (SampleReader), in the memory of `where`, as forward() takes them.
// Only read: nothing requires a gradient with respect to it.
at::Tensor model_input(const data::SampleShape& shape, const void* inputs, uint64_t batch,
                       at::Device where = at::kCPU);

}  // namespace lockstep
