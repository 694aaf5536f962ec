#include "worker/torch/plan/input_sources.h"

#include <algorithm>
#include <utility>

#include "comm/base/text/printable.h"
#include "worker/torch/plan/role_tensors.h"

namespace lockstep::exported {
namespace {

bool same_values(const ProgramTensor& a, const ProgramTensor& b) {
  if (a.shape != b.shape || a.dtype != b.dtype) return false;
  const uint64_t bytes = a.elements() * bytes_of(a.dtype);
  std::vector<uint8_t> of_a(bytes);
  std::vector<uint8_t> of_b(bytes);
  gather(a, of_a.data());
  gather(b, of_b.data());
  return of_a == of_b;
}

// A tensor in a line of code: in another program the same name may be of another line.
bool is_nameless(const ProgramInput& input) {
  return input.kind == InputKind::kConstant && input.name.starts_with("lifted_tensor");
}

}  // namespace

std::vector<InputSource> sources_of(const Program& program, const ProgramParts& parts,
                                    const ProgramRoles& roles, bool is_evaluation) {
  std::vector<InputSource> sources;
  for (const ProgramInput& input : program.inputs) {
    InputSource& source = sources.emplace_back();
    if (input.kind == InputKind::kFixed) continue;
    if (input.kind == InputKind::kUser) {
      source = user_source(input, roles);
      continue;
    }
    const ProgramTensor& tensor = program.tensors[input.tensor];
    const auto place = [&](const std::vector<size_t>& tensors, InputSource::Kind kind) {
      const auto found = std::find(tensors.begin(), tensors.end(), input.tensor);
      if (found == tensors.end()) return false;
      source.kind = kind;
      source.index = static_cast<uint32_t>(found - tensors.begin());
      source.shape = tensor.shape;
      return true;
    };
    if (place(parts.parameters, InputSource::Kind::kParameter) ||
        place(parts.statistics, InputSource::Kind::kStatistic) ||
        (is_evaluation && place(parts.counters, InputSource::Kind::kCounter)))
      continue;
    source.kind = InputSource::Kind::kOwn;
    source.own = tensor_of(tensor);
  }
  return sources;
}

EvalSources::EvalSources(const Program& training, const ProgramParts& parts,
                         std::vector<std::string>* notes)
    : training_(training), notes_(notes) {
  add(parts.parameters, InputSource::Kind::kParameter);
  add(parts.statistics, InputSource::Kind::kStatistic);
  add(parts.counters, InputSource::Kind::kCounter);
}

Result<std::vector<InputSource>> EvalSources::of(const std::string& who, const Program& program,
                                                 const ProgramRoles& roles) const {
  std::vector<InputSource> sources;
  for (const ProgramInput& input : program.inputs) {
    InputSource source;
    if (input.kind == InputKind::kUser) source = user_source(input, roles);
    if (input.kind != InputKind::kUser && input.kind != InputKind::kFixed) {
      const ProgramTensor& tensor = program.tensors[input.tensor];
      LOCKSTEP_ASSIGN_OR_RETURN(source, source_of(input, tensor));
      if (source.kind == InputSource::Kind::kOwn) note_other_value(who, input, tensor);
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

void EvalSources::add(const std::vector<size_t>& tensors, InputSource::Kind kind) {
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const ProgramTensor& tensor = training_.tensors[tensors[i]];
    const InputSource source{.kind = kind, .index = i, .shape = tensor.shape, .own = {}};
    for (const std::string& name : tensor.names) known_[name] = {source, &tensor};
  }
}

Result<InputSource> EvalSources::source_of(const ProgramInput& input,
                                           const ProgramTensor& tensor) const {
  const bool is_constant = input.kind == InputKind::kConstant;
  const auto found = is_constant ? known_.end() : known_.find(input.name);
  if (found == known_.end()) {
    if (tensor.is_parameter && tensor.requires_grad)
      return Status(Code::kConfig, "has a parameter " + input.name +
                                       ", which the training program does not have; export "
                                       "both from one module");
    return InputSource{
        .kind = InputSource::Kind::kOwn, .index = 0, .shape = {}, .own = tensor_of(tensor)};
  }
  if (found->second.tensor->shape != tensor.shape || found->second.tensor->dtype != tensor.dtype)
    return Status(Code::kConfig, "has a tensor " + input.name +
                                     " of another shape or type than the training program; "
                                     "export both from one module");
  return found->second.source;
}

void EvalSources::note_other_value(const std::string& who, const ProgramInput& input,
                                   const ProgramTensor& tensor) const {
  const auto same = std::ranges::find_if(training_.tensors, [&](const ProgramTensor& other) {
    return std::ranges::find(other.names, input.name) != other.names.end();
  });
  if (same == training_.tensors.end() || is_nameless(input) || same_values(*same, tensor)) return;
  notes_->push_back(who + " has another " + printable(input.name) +
                    " than the training program, and computes with its own: export both from one "
                    "module with the same values, unless you want that");
}

}  // namespace lockstep::exported
