// A row of the table of models (model_table.h).
// Thread-safety: values.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

enum class ModelTakes {
  kImages,  // or rows of numbers
  kTokens,
  kEither,  // the training data decide
};

// A key of model that not all models have.
struct ModelKey {
  std::string_view key;       // "dropout"
  std::string_view how = {};  // for the help of the key: what it does in this model
};

struct ModelRow {
  std::string_view name;                           // model.name
  std::string_view about = {};                     // for the help of model.name
  std::array<std::string_view, 4> elsewhere = {};  // other programs' words for it
  std::span<const ModelKey> keys = {};             // options by_model of job_train.proto
  ModelTakes takes = ModelTakes::kImages;
  bool is_from_file = false;           // the user's own: model.path
  bool is_script = false;              // a process in Python trains it: script.path
  bool tells_documents_apart = false;  // takes positions besides tokens: data.documents: pack
  // Null: nothing to do, nothing to check, not known.
  void (*resolve)(wire::ModelSpec*) = nullptr;  // replaces the zeros that stand for a default
  Status (*check)(const wire::ModelSpec&) = nullptr;
  double (*flops_per_sample)(const wire::ModelSpec&) = nullptr;
};

}  // namespace lockstep
