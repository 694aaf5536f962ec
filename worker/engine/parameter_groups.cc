#include "worker/engine/parameter_groups.h"

#include <algorithm>
#include <string>

#include "comm/base/limits.h"
#include "worker/model/weights/name_pattern.h"

namespace lockstep {
namespace {

Status check_patterns(const ModelLayout& model, const wire::OptimizerSpec& spec) {
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : model.parameters) names.push_back(parameter.name);
  for (int i = 0; i < spec.groups_size(); ++i)
    LOCKSTEP_RETURN_IF_ERROR(check_pattern("optimizer.groups." + std::to_string(i) + ".match",
                                           spec.groups(i).match(), names));
  return Status::ok();
}

// The index of these settings in the table, where they are added if they are new.
uint32_t index_of(const OptimizerGroup& settings, std::vector<OptimizerGroup>& table) {
  const auto at = std::ranges::find_if(table, [&settings](const OptimizerGroup& other) {
    return other.lr_scale == settings.lr_scale &&
           other.weight_decay_scale == settings.weight_decay_scale;
  });
  const auto index = static_cast<uint32_t>(std::ranges::distance(table.begin(), at));
  if (at == table.end()) table.push_back(settings);
  return index;
}

}  // namespace

Result<ParameterGroups> resolve_groups(const ModelLayout& model, const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_patterns(model, spec));
  ParameterGroups out;
  if (spec.groups_size() > 0) out.frozen.resize(model.parameters.size());
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const ParameterSpec& parameter = model.parameters[i];
    OptimizerGroup settings;
    const auto map = std::ranges::find_if(spec.groups(), [&parameter](const auto& g) {
      return matches_pattern(g.match(), parameter.name);
    });
    if (map != spec.groups().end()) {
      settings = {map->lr(), map->weight_decay()};
      out.frozen[i] = map->freeze();
    }
    if (spec.spare_vectors() && parameter.shape.size() <= 1) settings.weight_decay_scale = 0;
    const bool is_trained = out.frozen.empty() || !out.frozen[i];
    out.group_of.push_back(is_trained ? index_of(settings, out.table) : 0);
  }
  if (!model.parameters.empty() && out.table.empty())
    return Status(
        Code::kUsage,
        "optimizer.groups freezes every parameter: nothing is left to train; freeze fewer");
  if (out.table.size() > limits::kUpdateGroups)
    return Status(Code::kUsage, "optimizer.groups makes " + std::to_string(out.table.size()) +
                                    " different pairs of lr and weight_decay, more than " +
                                    std::to_string(limits::kUpdateGroups) +
                                    "; give the same factors to more parameters");
  return out;
}

}  // namespace lockstep
