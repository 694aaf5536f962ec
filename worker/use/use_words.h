// What the commands that use a trained model on data have in common on their command lines.
//
// Thread-safety: one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/status.h"
#include "worker/use/open_model.h"
#include "worker/use/use_data.h"

namespace lockstep {

struct UseWords {
  ModelPlace place;
  UsedDataPlace data;
  uint32_t batch = 0;  // samples; 0: as the run's evaluation
  int threads = 0;     // that compute; 0: as a worker of the run
};

void add_use_words(CLI::App& app, UseWords& words);

// A model and data that fit each other.
struct ModelAndData {
  TrainedModel trained;
  std::unique_ptr<UsedData> data;
  std::optional<OpenModel> model;
  uint64_t batch = 0;
};

// Also sets the number of threads that compute.
Status open_model_and_data(const UseWords& words, ModelAndData* out);

// Runs a command: parses, computes, tells its error on stderr. Returns the exit code.
int run_use_command(CLI::App& app, int argc, char** argv, const std::function<Status()>& command);

}  // namespace lockstep
