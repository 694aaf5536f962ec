// Compares an export with its checkpoint: loss, accuracy and speed on the run's own evaluation
// data, which `lockstep-worker measure` measures here and now.
//
// Thread-safety: of one thread; starts a process and waits for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

struct MeasuredModel {
  std::string what;         // "the checkpoint's weights", "8 bits"
  uint64_t file_bytes = 0;  // of the weights or the program
  double loss = 0;
  double accuracy = 0;
  double samples_per_second = 0;
};

struct Measurement {
  std::string why_not;   // empty: there are figures
  uint64_t samples = 0;  // looked at
  uint64_t of = 0;       // that the evaluation data have
  uint64_t batch = 0;
  uint64_t threads = 0;
  std::vector<MeasuredModel> models;
};

struct MeasureRequest {
  std::string run_dir;
  std::vector<std::string> checkpoints;  // directories with model.safetensors, in order
  std::string exported;                  // directory of an export, the last one; empty: none
  std::string file;                      // for the worker's answer; removed
};

// `models`: with names and sizes, by checkpoint, then the export. A measurement that is not
// possible is no error of the export: Measurement::why_not says why.
Measurement measure_export(const MeasureRequest& request, std::vector<MeasuredModel> models);

}  // namespace lockstep
