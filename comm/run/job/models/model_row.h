// A row of the table of models (model_table.h).
// Thread-safety: values.
#pragma once

#include <string_view>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

enum class ModelTakes {
  kImages,  // or rows of numbers
  kTokens,
  kEither,  // the training data decide
};

struct ModelRow {
  std::string_view name;  // model.name
  ModelTakes takes = ModelTakes::kImages;
  bool is_from_file = false;           // the user's own: model.path
  bool is_script = false;              // a process in Python trains it: script.path
  bool tells_documents_apart = false;  // takes positions beside tokens: data.documents: pack
  // Null: nothing to do, nothing to check, not known.
  void (*resolve)(wire::ModelSpec*) = nullptr;  // replaces the zeros that stand for a default
  Status (*check)(const wire::ModelSpec&) = nullptr;
  double (*flops_per_sample)(const wire::ModelSpec&) = nullptr;
};

}  // namespace lockstep
