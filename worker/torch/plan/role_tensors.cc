#include "worker/torch/plan/role_tensors.h"

namespace lockstep::exported {

InputSource user_source(const ProgramInput& input, const ProgramRoles& roles) {
  InputSource source;
  source.kind =
      roles.labels == input.user_input ? InputSource::Kind::kLabels : InputSource::Kind::kUser;
  source.user_input = input.user_input;
  for (const ProgramRoles::Field& field : roles.fields) {
    if (field.user_input != input.user_input) continue;
    source.kind = InputSource::Kind::kField;
    source.index = field.field;  // weights come after all of these
  }
  return source;
}

OwnOutputs own_outputs(const std::vector<at::Tensor>& out, const ProgramRoles& roles) {
  OwnOutputs own{.losses = out[roles.losses], .weights = {}, .metrics = {}};
  if (roles.weights) own.weights = out[*roles.weights];
  for (const uint32_t i : roles.metrics) own.metrics.push_back(out[i]);
  return own;
}

}  // namespace lockstep::exported
