// `lockstep export model`: a directory with the weights of a run, in the form that the library of
// their model loads, and with everything that a user of the weights needs.
//
//   DIR/  model.safetensors   all but torchscript and exported
//         config.json         gpt2: Hugging Face's from_pretrained(DIR) works
//         model.pt            torchscript: the module in evaluation mode
//         model.pt2           exported: the program for evaluation
//         train.pt2           exported: the program for training
//         tokenizer files     copies, if the job has a tokenizer
//         lockstep.json, README.md
//
// With --int8 instead:
//
//   DIR/  model.int8.safetensors, load.py   built-in models
//         model.pt2                         exported: the program for evaluation, in 8 bits
//
// The directory appears whole, by one rename.
//
// Thread-safety: of one thread; starts a process for torchscript.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "deploy/cli/export/chosen_weights.h"

namespace lockstep {

struct ExportRequest {
  std::string run_dir;
  std::string checkpoint = "last";  // "last", "best" (checkpoint.best), or a step
  WeightChoice weights;             // --ema, --prune
  std::string int8;                 // --int8: auto, dynamic or weights; empty: without
  std::string target;               // DIR
  std::string command;              // as the user typed it
};

struct ExportDone {
  std::string checkpoint;  // its name
  std::string figures;     // lines about size, accuracy and speed; empty: none were measured
};

// kNoInput without run or checkpoint; kBadData for a damaged checkpoint; kUsage if DIR is there and
// not empty, the step has no checkpoint, or there is no best; kConfig if the model cannot be
// exported here.
Result<ExportDone> export_model(const ExportRequest& request);

}  // namespace lockstep
