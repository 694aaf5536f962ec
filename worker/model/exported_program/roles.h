// The roles of an exported program's inputs and outputs in a job: the batch and its labels, logits
// or losses.
//
//   forward(x)          -> logits                       softmax cross-entropy, or train.loss
//   forward(x, labels)  -> losses                       one for each sample
//   forward(x[, labels]) -> {"loss": losses, ...}       with metrics, one for each sample
//   forward(x, inputs...[, targets...])                 with data.inputs and data.targets
//
// If there are two inputs, the labels are the one that is named label, labels, target, targets or
// y, else the second. Further inputs and targets are found by the names that the job gives them,
// or, if no input of the program has such a name, by their order. "weight" in the dictionary is how
// much each sample counts: the mean loss is the sum of "loss" over the sum of "weight".
//
// Thread-safety: values and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/model/exported_program/field_names.h"
#include "worker/model/exported_program/own_loss.h"
#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

struct ProgramRoles {
  uint32_t x = 0;                  // of Program::user_inputs
  std::optional<uint32_t> labels;  // of Program::user_inputs
  struct Field {
    uint32_t user_input = 0;
    uint32_t field = 0;  // of FieldNames::names
  };
  std::vector<Field> fields = {};  // that are not the labels
  bool takes_targets = false;
  bool gives_losses = false;             // else outputs[0] are the logits
  uint32_t losses = 0;                   // of Program::outputs
  std::optional<uint32_t> weights = {};  // of Program::outputs
  std::vector<uint32_t> metrics = {};    // of Program::outputs, in the program's order

  // None if the program gives logits.
  std::optional<OwnLoss> own_loss(const Program& program) const;
};

// kConfig; the message begins with what the program does. kUsage for a language model of
// transformers whose own loss is not for the labels of a job.
Result<ProgramRoles> roles_of(const Program& program, bool is_of_tokens,
                              const FieldNames& names = {});

// The roles of a program for evaluation, with its metrics in the order of `training`. kConfig if it
// gives something else than the training program.
Result<ProgramRoles> eval_roles(const Program& training, const ProgramRoles& training_roles,
                                const Program& evaluation, bool is_of_tokens,
                                const FieldNames& names = {});

// kConfig for a name that a metric cannot have, or too many of them.
Status check_metric_names(const std::vector<std::string>& names);

inline constexpr char kLossName[] = "loss";
inline constexpr char kWeightName[] = "weight";

}  // namespace lockstep::exported
