// The models that a job can name, one row each, without Torch: what a model takes, and what the
// command line, the coordinator and the worker ask of it. worker/torch/model/registry.cc has the
// row that builds it.
//
// Thread-safety: constant tables and pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/run/job/models/model_row.h"

namespace lockstep {

std::span<const ModelRow> model_table();
const ModelRow* find_model(std::string_view name);  // null: there is none of that name
std::vector<std::string_view> model_names();

// "gpt2": the built-in models that learn from tokens, and those that tell documents apart.
std::string models_of_tokens();
std::string models_of_packed_documents();

}  // namespace lockstep
