// Small safetensors files with tensors of any type, and a state to read them into.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "comm/run/checkpoint/safetensors.h"
#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep::testing {

struct WrittenTensor {
  std::string type = "F32";
  std::vector<int64_t> shape;
  std::string bytes;
};

inline std::string bytes_of_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Floats that count up from `first`.
inline WrittenTensor counting(std::vector<int64_t> shape, float first) {
  size_t n = 1;
  for (const int64_t size : shape) n *= static_cast<size_t>(size);
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = first + static_cast<float>(i);
  return {"F32", std::move(shape), bytes_of_floats(values)};
}

inline std::string weights_file(const std::map<std::string, WrittenTensor>& tensors) {
  nlohmann::json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.type},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data;
}

// Zeros, until something is read into it.
class EmptyState {
 public:
  EmptyState& add(std::string name, std::vector<int64_t> shape,
                  StateSection section = StateSection::kParameter, DType dtype = DType::kF32) {
    memory_.emplace_back(*tensor_bytes(dtype, shape));
    tensors_.push_back({section, std::move(name), dtype, std::move(shape), memory_.back().data(),
                        memory_.back().size()});
    return *this;
  }
  const std::vector<StateTensor>& tensors() const { return tensors_; }
  std::vector<float> floats(const std::string& name) const {
    for (const StateTensor& tensor : tensors_) {
      if (tensor.name != name) continue;
      std::vector<float> values(tensor.bytes / sizeof(float));
      std::memcpy(values.data(), tensor.data, tensor.bytes);
      return values;
    }
    return {};
  }

 private:
  std::deque<std::vector<std::byte>> memory_;
  std::vector<StateTensor> tensors_;
};

}  // namespace lockstep::testing
