#include "worker/model/exported_program/roles.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "comm/base/text/printable.h"
#include "comm/run/job/metric_names.h"

namespace lockstep::exported {
namespace {

static_assert(kMostMetrics == kMetricsOfAModel);

constexpr std::array<std::string_view, 5> kLabelNames = {"label", "labels", "target", "targets",
                                                         "y"};

// Names that TensorBoard's tags already use for other values.
constexpr std::array<std::string_view, 4> kTakenNames = {"loss", "lr", "samples_per_second",
                                                         "perplexity"};

Status not_so(const std::string& what) {
  return {Code::kConfig, what};
}

bool is_label_name(const std::string& name) {
  return std::find(kLabelNames.begin(), kLabelNames.end(), name) != kLabelNames.end();
}

// The module that shifts the labels by one itself, and gives their mean. Empty: no module does.
std::string shifting_module(const Program& program) {
  for (const ProgramNode& node : program.graph.nodes)
    for (const ModuleOfNode& module : node.modules)
      if (module.type.find("ForCausalLM") != std::string::npos ||
          module.type.find("LMHeadModel") != std::string::npos)
        return module.type;
  return "";
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

// For each input of the program, the job's field that it is; empty: it is the first input.
using FieldOfInput = std::vector<std::optional<uint32_t>>;

// By the names, if the program has any of them.
Result<FieldOfInput> matched_fields(const Program& program, const FieldNames& names,
                                    uint32_t taken) {
  std::vector<std::string> own;
  FieldOfInput fields;
  for (const UserInput& input : program.user_inputs) {
    own.push_back(input.name);
    const auto found = std::find(names.names.begin(), names.names.begin() + taken, input.name);
    fields.emplace_back();
    if (found != names.names.begin() + taken)
      fields.back() = static_cast<uint32_t>(found - names.names.begin());
  }
  const auto unmatched = std::count(fields.begin(), fields.end(), std::nullopt);
  if (unmatched == 1) return fields;
  if (static_cast<size_t>(unmatched) < fields.size())
    return not_so("takes inputs named " + list_of(own) + ", and the job names " +
                  list_of({names.names.begin(), names.names.begin() + taken}) +
                  " beside the first input; give all of them the names of the job, or none");
  // In their order. If there are two inputs, the name of one may say that it is the target.
  size_t first = 0;
  if (fields.size() == 2 && is_label_name(own[0]) && !is_label_name(own[1])) first = 1;
  uint32_t next = 0;
  for (size_t i = 0; i < fields.size(); ++i)
    if (i != first) fields[i] = next++;
  return fields;
}

Status set_fields(const Program& program, const FieldNames& names, ProgramRoles* roles) {
  const size_t count = program.user_inputs.size();
  const auto all = static_cast<uint32_t>(names.names.size());
  if (count != 1 + size_t{all} && count != 1 + size_t{names.inputs})
    return not_so("takes " + std::to_string(count) + " inputs, but the job gives the first input" +
                  (names.inputs == 0 ? "" : ", " + std::to_string(names.inputs) + " more") +
                  " and the targets: " + list_of(names.names) +
                  "; export a module whose forward takes all of them, or the inputs alone");
  const uint32_t taken = count == 1 + size_t{all} ? all : names.inputs;
  LOCKSTEP_ASSIGN_OR_RETURN(const FieldOfInput fields, matched_fields(program, names, taken));
  for (uint32_t i = 0; i < count; ++i) {
    if (!fields[i])
      roles->x = i;
    else if (fields[i] == names.label)
      roles->labels = i;
    else
      roles->fields.push_back({.user_input = i, .field = *fields[i]});
  }
  roles->takes_targets = taken > names.inputs;
  return Status::ok();
}

Status set_inputs(const Program& program, bool is_of_tokens, const FieldNames& names,
                  ProgramRoles* roles) {
  const auto& inputs = program.user_inputs;
  if (!names.names.empty() && !inputs.empty()) return set_fields(program, names, roles);
  if (inputs.empty() || inputs.size() > 2)
    return not_so("takes " + std::to_string(inputs.size()) +
                  " inputs, but the data have one, and labels: export a module whose forward "
                  "takes the batch, or the batch and its labels");
  if (inputs.size() == 1) return Status::ok();
  roles->labels = is_label_name(inputs[0].name) && !is_label_name(inputs[1].name) ? 0 : 1;
  roles->x = 1 - *roles->labels;
  roles->takes_targets = true;
  if (!is_of_tokens || inputs[*roles->labels].name != "labels") return Status::ok();
  const std::string module = shifting_module(program);
  if (module.empty()) return Status::ok();
  return {Code::kUsage,
          "takes labels for the loss of " + printable(module) +
              ", which shifts them by one token; the labels of a job are shifted already. Export "
              "a module whose forward returns the logits alone"};
}

Status set_outputs(const Program& program, ProgramRoles* roles) {
  const auto& outputs = program.outputs;
  const auto named = [&](const std::string& name) {
    return std::find_if(outputs.begin(), outputs.end(),
                        [&](const ProgramOutput& output) { return output.name == name; });
  };
  const auto loss = named(kLossName);
  const bool has_one = outputs.size() == 1 && outputs[0].name != kLossName;
  roles->gives_losses = roles->takes_targets || loss != outputs.end();
  if (std::any_of(outputs.begin(), outputs.end(),
                  [](const ProgramOutput& output) { return !output.value; }))
    return not_so("gives None as an output; leave it out of what forward returns");
  if (!roles->gives_losses && !has_one)
    return not_so("gives " + std::to_string(outputs.size()) +
                  " outputs: export a module whose forward returns the logits alone, or a "
                  "dictionary with \"loss\"");
  if (!roles->gives_losses || has_one) return Status::ok();
  if (loss == outputs.end())
    return not_so("takes labels and gives " + std::to_string(outputs.size()) +
                  " outputs without a name \"loss\": let forward return the losses of the "
                  "samples, or a dictionary with \"loss\" and metrics");
  std::vector<std::string> names;
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == kLossName) {
      roles->losses = i;
    } else if (outputs[i].name == kWeightName) {
      roles->weights = i;
    } else {
      roles->metrics.push_back(i);
      names.push_back(outputs[i].name);
    }
  }
  return check_metric_names(names);
}

}  // namespace

Status check_metric_names(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::find(kTakenNames.begin(), kTakenNames.end(), name) != kTakenNames.end())
      return not_so("gives a metric named " + name +
                    ", which Lockstep shows of every run; give it another name");
  const Status fits = check_metrics(names);
  return fits.is_ok() ? fits : not_so(fits.message());
}

std::optional<OwnLoss> ProgramRoles::own_loss(const Program& program) const {
  if (!gives_losses) return std::nullopt;
  OwnLoss own{
      .takes_labels = labels.has_value(), .has_weights = weights.has_value(), .metrics = {}};
  for (const uint32_t i : metrics) own.metrics.push_back(program.outputs[i].name);
  return own;
}

Result<ProgramRoles> roles_of(const Program& program, bool is_of_tokens, const FieldNames& names) {
  ProgramRoles roles;
  LOCKSTEP_RETURN_IF_ERROR(set_inputs(program, is_of_tokens, names, &roles));
  LOCKSTEP_RETURN_IF_ERROR(set_outputs(program, &roles));
  return roles;
}

Result<ProgramRoles> eval_roles(const Program& training, const ProgramRoles& training_roles,
                                const Program& evaluation, bool is_of_tokens,
                                const FieldNames& names) {
  LOCKSTEP_ASSIGN_OR_RETURN(ProgramRoles roles, roles_of(evaluation, is_of_tokens, names));
  const bool is_alike = roles.gives_losses == training_roles.gives_losses &&
                        roles.weights.has_value() == training_roles.weights.has_value() &&
                        roles.metrics.size() == training_roles.metrics.size();
  const Status differs = not_so(
      "does not give what the training program gives (losses, their weights, metrics of the same "
      "names); export both from one module");
  if (!is_alike) return differs;
  std::vector<uint32_t> ordered;
  for (const uint32_t wanted : training_roles.metrics)
    for (const uint32_t i : roles.metrics)
      if (evaluation.outputs[i].name == training.outputs[wanted].name) ordered.push_back(i);
  if (ordered.size() != roles.metrics.size()) return differs;
  roles.metrics = std::move(ordered);
  return roles;
}

}  // namespace lockstep::exported
