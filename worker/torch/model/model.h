// A model is a pure function: (inputs, parameters, buffers, mode) -> output. A model owns no
// tensor. So the engine can lay parameters out in one flat buffer, and give every slot its own
// buffers.
//
// INVARIANTS
//  M1 layout() is fixed at creation and in registration order. Its names are the names of the same
//     model written in PyTorch.
//  M2 The result of forward() depends on its arguments alone. In training mode forward() updates
//     the given buffers in place. A model from a file may draw from LibTorch's default generators
//     for the CPU and for the device of x. Both are seeded from mode.dropout_key first.
//
// Thread-safety: forward() from any thread, on tensors of that thread. Forwards of models from
// files wait for each other, whatever the model, because the generators belong to the process.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/sample_shape.h"
#include "worker/cuda/kernels/layer_kernels.h"
#include "worker/model/spec.h"
#include "worker/torch/model/gradient_sink.h"
#include "worker/torch/model/predictor.h"

namespace lockstep {

class VarlenAttention;

struct ForwardMode {
  // Receives the output of every layer with parameters, by the index of the layer's first
  // parameter.
  using Observer = std::function<void(uint32_t parameter, const at::Tensor& output)>;

  bool training = false;
  uint64_t dropout_key = 0;                  // of this slot in this step; see dropout_mask.h
  const uint64_t* dropout_key_at = nullptr;  // the key for kernels, valid until after backward
  bool is_fast = false;  // comm.numerics fast: the quickest kernels, whatever their bits
  // The run's counters of steps, by index of ModelLayout::step_counters: evaluation may read them.
  // Empty: their initial values.
  std::span<const int64_t> counters = {};
  const Observer* observer = nullptr;  // to look into a step; null while training
  LayerKernels kernels = {};           // of the device; not used with an observer
  GradientSink* sink = nullptr;        // outlives backward; null: every weight gets its gradient
  // Packed documents (document_attention.h): the device's attention over them, or null; and an
  // upper bound of their number in x, or 0 if they are not counted.
  const VarlenAttention* varlen = nullptr;
  uint32_t most_documents = 0;
  bool is_fp8 = false;        // linear layers multiply in fp8 (fp8_linear.h)
  Fp8Kernels* fp8 = nullptr;  // that cast; also used with an observer; null: the host casts
};

// The fields of a batch (data/dataset/fields.h), each (B, dims...) in its stored type.
struct FieldTensors {
  std::vector<at::Tensor> all;  // by FieldList::specs(); undefined for the label
  at::Tensor target;            // the first target; undefined if it is the label
  at::Tensor weight;            // (B) floats; undefined: every sample counts alike
};

struct ModelInputs {
  // (B, C, H, W) floats, (B, C) floats of rows, or (B, T) int64 token ids. If
  // SampleShape::has_positions: (B, 2, T), token ids and the position of each token in its
  // document.
  at::Tensor x;
  // (B) or (B, T) int64, for models whose own loss takes labels; else undefined.
  at::Tensor labels = {};
  FieldTensors fields = {};
};

// Logits, or the parts of the samples' losses. Tensors of samples have the shape (B).
struct ModelOutput {
  at::Tensor logits;        // (B, classes), or (B, T, classes); undefined if the model gives losses
  at::Tensor losses = {};   // undefined: softmax cross-entropy of the logits and the labels
  at::Tensor weights = {};  // the mean loss is sum(losses) / sum(weights); undefined: all are 1
  at::Tensor right = {};  // 1 for a right prediction, else 0; undefined: nothing is right or wrong
  std::vector<at::Tensor> metrics = {};  // OwnLoss::metrics
};

// How many samples a batch may have.
struct BatchRange {
  uint64_t min = 1;
  uint64_t max = UINT64_MAX;
};

class Model {
 public:
  virtual ~Model() = default;

  const ModelLayout& layout() const { return layout_; }

  // Brings the model's own tensors to the device. Called once, before any forward() on tensors of
  // another device than the CPU. kConfig if the model cannot be there.
  virtual Status move_to(at::Device) { return Status::ok(); }

  // Notes on the model for the user, a sentence each.
  virtual std::vector<std::string> notes() const { return {}; }

  // The sizes of batches that training takes, and that evaluation takes.
  virtual BatchRange training_batches() const { return {}; }
  virtual BatchRange evaluation_batches() const { return {}; }
  // kConfig, with what to do, unless the model takes batches of so many samples. `whose`: "a slot
  // of ...".
  virtual Status check_batch(uint64_t /*samples*/, bool /*training*/,
                             const std::string& /*whose*/) const {
    return Status::ok();
  }

  // `parameters` and `buffers`: by index of layout().
  virtual ModelOutput forward(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                              std::span<const at::Tensor> buffers,
                              const ForwardMode& mode) const = 0;

  // Null: the model has no program for predictions alone (model.predict_path).
  virtual const Predictor* predictor() const { return nullptr; }

  // True if backward reads the logits. Nothing may then write to the logits before backward.
  virtual bool keeps_logits() const { return true; }

 protected:
  explicit Model(ModelLayout layout) : layout_(std::move(layout)) {}

 private:
  ModelLayout layout_;
};

// A model with one input, whose output is its logits.
class LogitsModel : public Model {
 public:
  ModelOutput forward(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                      std::span<const at::Tensor> buffers, const ForwardMode& mode) const final {
    return {.logits = logits(inputs.x, parameters, buffers, mode)};
  }

 protected:
  using Model::Model;
  virtual at::Tensor logits(const at::Tensor& x, std::span<const at::Tensor> parameters,
                            std::span<const at::Tensor> buffers, const ForwardMode& mode) const = 0;
};

// The values that the model gives for a prediction: a logit for each class, or else one for each
// element of the target.
uint32_t outputs_of(const wire::TrainSpec& train, const data::SampleShape& shape, uint32_t classes);

// `classes`: outputs_of().
// kUsage for an unknown name (the message names the nearest one), a bad setting, or samples of the
// other kind. kConfig if the images are too small for the model. builtin.h has the errors of models
// from files.
Result<std::unique_ptr<Model>> make_model(const wire::ModelSpec& spec,
                                          const data::SampleShape& shape, uint32_t classes);

// A view of a batch's inputs (SampleReader) in the memory of `where`, as forward() takes them. The
// view is only read: no gradient is computed with respect to it.
at::Tensor model_input(const data::SampleShape& shape, const void* inputs, uint64_t batch,
                       at::Device where = at::kCPU);
// A view of its labels in the same way: (B), or (B, T) for sequences.
at::Tensor label_input(const data::SampleShape& shape, const int64_t* labels, uint64_t batch,
                       at::Device where = at::kCPU);
// The fields of a batch, copied from the records that follow its labels.
FieldTensors field_inputs(const data::SampleShape& shape, const int64_t* labels, uint64_t batch,
                          at::Device where = at::kCPU);

}  // namespace lockstep
