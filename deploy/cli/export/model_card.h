// The texts that go with exported weights: what a user of them needs, and where they come from.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/run/checkpoint/manifest.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"
#include "deploy/cli/export/chosen_weights.h"
#include "deploy/cli/export/measure_export.h"
#include "worker/model/exported_program/int8/int8_program.h"

namespace lockstep {

struct Int8Facts {
  std::string form;  // dynamic, weights; stored: built-in models, which compute with floats
  exported::Int8Counts counts;
};

struct ModelFacts {
  wire::JobSpec job;
  wire::DataFacts facts;
  Manifest manifest;
  std::string checkpoint;  // its name
  WeightChoice weights;
  nlohmann::json summary;                    // summary.json; null: the run has not ended
  std::string command;                       // that made this
  std::map<std::string, std::string> files;  // SHA-256 in hex by name
  std::vector<std::string> tokenizer_files;  // names of copies
  // Channels of the first layer and outputs of the last one; 0: the weights do not show them.
  int64_t channels = 0;
  int64_t outputs = 0;
  std::optional<Int8Facts> int8;        // with --int8
  std::optional<Measurement> measured;  // with --int8 or --prune
};

// lockstep.json: model, input, transforms, mean and deviation, class names, tokenizer, step,
// hashes.
nlohmann::json usage_json(const ModelFacts& model);

// config.json of Hugging Face's GPT2LMHeadModel.
nlohmann::json gpt2_config(const ModelFacts& model);

// Lines of load.py that make `net` of `found`, the floats by name; empty: no library has the model.
std::string int8_loading_lines(const ModelFacts& model);

// The figures of Measurement, for a terminal; empty: there are none.
std::string figures_text(const ModelFacts& model);

// README.md: how to load the weights, figures, data, the command.
std::string readme_text(const ModelFacts& model);

}  // namespace lockstep
