// The parts of a model, without Torch: names, shapes and initial values.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/model/exported_program/own_loss.h"

namespace lockstep {

struct ParameterSpec {
  std::string name;  // "fc1.weight"
  std::vector<int64_t> shape;
  double uniform_bound = 0;  // drawn from [-bound, bound); 0: not drawn this way
  float constant = 0;        // value of all elements if nothing is drawn
  double normal_std = 0;     // of a normal distribution around 0; 0: not drawn this way
  std::shared_ptr<const float> values = {};  // the initial values; null: one of the above
  // False: an embedding, or of the layer that gives the output (optimizer.name muon). For models
  // from files, find_hidden_matrices() finds it out.
  bool is_hidden = true;
  // False: the loss never depends on it. As in PyTorch, where it has no .grad, no update changes
  // it, weight decay neither. Known of exported programs only.
  bool gets_gradient = true;
  std::vector<std::string> tied_names = {};  // further names of the same tensor

  uint64_t elements() const;
};

// Floats that forward updates in training mode: running statistics.
struct BufferSpec {
  std::string name;  // "bn1.running_mean"
  int64_t size = 0;
  float initial = 0;
  std::shared_ptr<const float> values = {};  // the initial values; null: `initial`
  std::vector<int64_t> shape = {};           // in the model's state dict; empty: not known
};

// A tensor of a model from a file that never changes, as a frozen parameter. It is part of the
// file and not of the state.
struct ConstantSpec {
  std::vector<std::string> names;  // several if it is tied
  std::string type;                // of safetensors: "F32"
  std::vector<int64_t> shape;
  std::function<std::vector<uint8_t>()> bytes;  // its elements in row-major order
};

// An int64 that counts the steps in which forward ran.
struct StepCounterSpec {
  std::string name;  // "bn1.num_batches_tracked"
  int64_t initial = 0;
};

struct ModelLayout {
  std::vector<ParameterSpec> parameters;  // in registration order
  std::vector<BufferSpec> buffers;
  std::vector<StepCounterSpec> step_counters;  // +1 a step
  std::vector<ConstantSpec> constants = {};    // with a name in the state dict

  // The fewest values per channel and sample that any BatchNorm averages over; 0: no BatchNorm.
  // batch_norm_layer: the layer with the fewest.
  uint64_t batch_norm_values = 0;
  std::string batch_norm_layer;

  std::optional<OwnLoss> own_loss = {};  // none: the model gives logits

  bool has_weights() const { return own_loss && own_loss->has_weights; }
};

// Adds layers with PyTorch's default initial distributions. Each function returns the index of the
// layer's weight, for the model's forward. The bias is the next parameter.
class LayoutBuilder {
 public:
  // weight (out, in), bias (out)
  uint32_t add_linear(const std::string& name, int64_t in, int64_t out);
  // The same for the layer that gives the output.
  uint32_t add_output(const std::string& name, int64_t in, int64_t out);
  // weight (out, in, kernel, kernel), bias (out)
  uint32_t add_conv(const std::string& name, int64_t in, int64_t out, int64_t kernel);
  // The weight alone, for a layer in front of a BatchNorm. Normal with deviation sqrt(2 / fan out),
  // for ReLU (He et al. 2015, arXiv:1502.01852).
  uint32_t add_conv_without_bias(const std::string& name, int64_t in, int64_t out, int64_t kernel);

  // weight and bias (channels); buffers running_mean and running_var.
  struct BatchNorm {
    uint32_t weight = 0;        // index of the parameter; bias is the next
    uint32_t running_mean = 0;  // index of the buffer; running_var is the next
  };
  // `values_per_sample`: how many values of one sample a channel's mean averages over.
  BatchNorm add_batch_norm(const std::string& name, int64_t channels, uint64_t values_per_sample);

  ModelLayout take() { return std::move(layout_); }

 private:
  uint32_t add_pair(const std::string& name, std::vector<int64_t> weight_shape, int64_t fan_in);
  ModelLayout layout_;
};

// Fills `out` (spec.elements() floats) with initial values. They depend only on (seed, parameter
// index), so later parameters do not change a parameter's initial values.
void init_parameter(const ParameterSpec& spec, uint64_t seed, uint32_t parameter_index, float* out);

// By index of layout.step_counters.
std::vector<int64_t> first_counters(const ModelLayout& layout);

// Fills `out` (spec.size floats).
void init_buffer(const BufferSpec& spec, float* out);

}  // namespace lockstep
