// A trained model on disk, with all that its use needs: a checkpoint of a run, or a directory that
// `lockstep export model` made. The directory needs neither the run nor its data.
//
// Errors: from reading the files; kUsage for a directory that is neither; kBadData for a directory
// with other files than lockstep.json tells.
//
// Thread-safety: free functions.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"
#include "worker/inference/token_text.h"

namespace lockstep {

struct TrainedModel {
  std::string place;          // as the user named it
  wire::JobSpec job;          // of a directory: what lockstep.json says
  wire::DataLegend legend;    // class names, and the constants of `normalize`
  std::string weights;        // path of safetensors
  bool is_directory = false;  // of an export; else of a run
  bool is_int8 = false;      // an export with weights in 8 bits; exported: without training program
  uint32_t outputs = 0;      // classes, or tokens; 0: not known
  std::string tokenizer;     // path of the vocabulary; empty: none
  bool is_of_bytes = false;  // without a tokenizer: tokens are bytes of text
};

// Where lockstep-worker is told to look.
struct ModelPlace {
  std::string path;        // of a run, or of a directory of an export
  std::string checkpoint;  // of a run: the directory of one, verified
  bool or_newer = false;   // the newest one, if a run that goes on has deleted that one
};

Result<TrainedModel> read_trained_model(const ModelPlace& place);

// Calls `load` with the model, again with a newer checkpoint if the first one is deleted meanwhile.
Status load_trained_model(const ModelPlace& place,
                          const std::function<Status(const TrainedModel&)>& load);

// `tokenizer`: the one that the user names in place of the model's own; may be empty.
Result<TokenText> token_text(const TrainedModel& model, const std::string& tokenizer);

}  // namespace lockstep
