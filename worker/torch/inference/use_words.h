// The command line that commands on a trained model share, and the frame in which they run.
//
// Thread-safety: one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/status.h"
#include "worker/inference/use_data.h"
#include "worker/torch/inference/open_model.h"

namespace lockstep {

struct UseWords {
  ModelPlace place;
  UsedDataPlace data;
  uint32_t batch = 0;  // samples; 0: as the run's evaluation
  int threads = 0;     // that compute; 0: as a worker of the run
};

void add_model_place(CLI::App& app, ModelPlace& place);
void add_use_words(CLI::App& app, UseWords& words);

// A model and data that fit each other.
struct ModelAndData {
  TrainedModel trained;
  std::unique_ptr<UsedData> data;
  std::optional<OpenModel> model;
  uint64_t batch = 0;
};

// Also sets the number of threads that compute.
Status open_model_and_data(const UseWords& words, ModelUse use, ModelAndData* out);

// The part of the batches that a process computes, and the files to which it reports.
struct PartWords {
  uint64_t part = 0;
  uint64_t parts = 1;
  std::string out;       // file of the part
  std::string progress;  // file that says how far the part is; empty: none
};

void add_part_words(CLI::App& app, PartWords& words);

// Calls `use` for each batch of the part, in their order: samples [begin, end).
Status for_each_batch(const PartWords& words, uint64_t samples, uint64_t batch,
                      const std::function<Status(uint64_t begin, uint64_t end)>& use);

// Runs a command: parses, computes, tells its error on stderr. `failed`: the message of an
// exception of LibTorch begins with it. Returns the exit code.
int run_use_command(CLI::App& app, int argc, char** argv, const std::string& failed,
                    const std::function<Status()>& command);

}  // namespace lockstep
