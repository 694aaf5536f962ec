// The kinds of tensors in a model from a file. Lockstep finds them out by running the model:
//
//   parameters  tensors that are trained
//   statistics  floats that a forward changes while training
//   counters    int64 that a forward increments by one, and that do not influence its output. Each
//               slot of a step would see another count, in each number of workers.
//   constants   all other tensors, frozen parameters too: they stay as the file has them
//
// Lockstep refuses a tensor that changes in any other way: it could not be the same on every rank,
// or would not survive a restart.
//
// Thread-safety: free functions; the model belongs to one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

// The model under examination. Its tensors are places that can hold other tensors.
class ExaminedModel {
 public:
  virtual ~ExaminedModel() = default;

  virtual size_t tensors() const = 0;
  virtual std::string name(size_t tensor) const = 0;
  virtual bool is_trained(size_t tensor) const = 0;
  virtual at::Tensor get(size_t tensor) const = 0;
  virtual void set(size_t tensor, const at::Tensor& value) = 0;

  // The place where a forward reads a counter: "aten.remainder (model.py, line 9)". Empty: it only
  // counts. None: unknown, so examine() tries several counts.
  virtual std::optional<std::string> reader_of(size_t /*tensor*/) const { return std::nullopt; }

  // Where the last forward wrote to a tensor: "aten.add_ (model.py, line 9)". Empty: unknown.
  virtual std::string writer_of(size_t /*tensor*/) const { return ""; }

  // A forward in training mode of `batch` random samples, the same each time. Throws what the model
  // throws.
  virtual at::Tensor train(uint64_t batch) = 0;
};

// Indices of the model's tensors.
struct TensorKinds {
  std::vector<size_t> parameters;
  std::vector<size_t> statistics;
  std::vector<size_t> counters;
  std::vector<size_t> constants;
  std::string one_sample_error;  // the error of a forward of one sample; empty if it may be one
};

struct ExaminedBatches {
  uint64_t first = 2;
  bool has_one = true;  // batches of one sample are to be tried
};

// kConfig; the message begins with what the model does, "changes its parameter ...". Throws what
// the model throws. The tensors are afterwards as they were before.
Result<TensorKinds> examine(ExaminedModel& model, const ExaminedBatches& batches);

// The floats of a tensor, which lives as long as they are held.
std::shared_ptr<const float> values_of(const at::Tensor& t);

std::string type_of(const at::Tensor& t);  // "Float"

// "F32"; null: safetensors has no such type.
const char* safetensors_type(at::ScalarType type);

}  // namespace lockstep
