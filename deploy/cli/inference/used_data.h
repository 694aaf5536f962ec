// The options for DATA and how to read it, of the commands that use a trained model on data.
//
// Thread-safety: free functions of the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct UsedDataWords {
  std::string path;
  std::string format = "auto";
  bool is_training = false;
  bool is_unlabelled = false;
  uint32_t batch = 0;
  uint32_t threads = 0;
};

void add_used_data(CLI::App& command, UsedDataWords& words, bool is_needed);

// --workers: processes, each for a part of the samples.
void add_part_count(CLI::App& command, uint32_t& parts);

// For lockstep-worker.
std::vector<std::string> worker_options(const UsedDataWords& words);

}  // namespace lockstep
