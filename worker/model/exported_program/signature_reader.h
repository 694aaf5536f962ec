// Reads a program's inputs, its outputs with their names, and the sizes of a batch.
//
// Only sources include this, because nlohmann/json is large.
// Thread-safety: one thread for each object.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "worker/model/exported_program/json_fields.h"
#include "worker/model/exported_program/program.h"
#include "worker/model/exported_program/tensor_reader.h"

namespace lockstep::exported {

// `root`: models/NAME.json. `values`: of the graph's inputs, empty for constants. Fills inputs and
// user_inputs of `program`.
void read_inputs(JsonFields& fields, const nlohmann::json& root,
                 std::span<const std::optional<ValueRef>> values, TensorReader& tensors,
                 Program& program);

// Fills outputs. REQUIRES: program.graph is read.
void read_outputs(JsonFields& fields, const nlohmann::json& root, Program& program);

// Fills samples, and refuses guards on anything but equal batches. REQUIRES: user_inputs are read.
void read_sizes(JsonFields& fields, const nlohmann::json& root, Program& program);

}  // namespace lockstep::exported
