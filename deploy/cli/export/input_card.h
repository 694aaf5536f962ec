// Describes an exported model: its input, its output and its architecture. The description says how
// files become the input, exactly enough to build it without Lockstep.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "deploy/cli/export/model_card.h"

namespace lockstep {

// `input` of lockstep.json.
nlohmann::json input_json(const ModelFacts& model);

// The section of README.md.
std::string input_text(const ModelFacts& model);

// `architecture` of lockstep.json: a name for people.
std::string architecture_text(const ModelFacts& model);

// Lines of Python with `net`, a function of the input, for models that no library has. Empty: a
// library has it.
std::string small_net_lines(const ModelFacts& model);

}  // namespace lockstep
