// The tensors that an archive holds, by the names of its two lists: weights and constants.
//
// Only sources include this, because nlohmann/json is large.
// Thread-safety: one thread for each object.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/model/exported_program/json_fields.h"
#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

class TensorReader {
 public:
  // Content of a file of the archive, verified.
  using ReadFile = std::function<Result<std::span<const uint8_t>>(const std::string& name)>;

  // `weights`, `constants`: the lists, {"config": {...}}. They outlive this.
  TensorReader(JsonFields& fields, const nlohmann::json& weights, const nlohmann::json& constants,
               ReadFile read_file, std::shared_ptr<const void> mapping);

  // Index into tensors() of the tensor of this name, read if it is new. `is_saved`: look in the
  // weights, else in the constants.
  uint32_t find(const std::string& name, InputKind kind, bool is_saved);

  // After the last find(): all tensors, with the tied names that no input has.
  std::vector<ProgramTensor> take();

 private:
  ProgramTensor read(const std::string& name, const nlohmann::json& entry,
                     const std::string& folder);
  void read_extents(const nlohmann::json& meta, const std::string& who, ProgramTensor& tensor);
  void read_bytes(const std::string& who, ProgramTensor& tensor);
  void check_parameter(const ProgramTensor& tensor);
  // `tensor`, called `name`, lies in the file of `first`: both must be the same tensor.
  void check_tied(const std::string& name, const ProgramTensor& tensor, const ProgramTensor& first);

  JsonFields& fields_;
  const nlohmann::json& weights_;
  const nlohmann::json& constants_;
  ReadFile read_file_;
  std::shared_ptr<const void> mapping_;
  std::vector<ProgramTensor> tensors_;
  std::map<std::string, uint32_t> by_entry_;
};

}  // namespace lockstep::exported
