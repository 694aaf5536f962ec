#include "worker/torch/plan/program_parts.h"

#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "comm/base/text/printable.h"
#include "data/loader/cut_padding.h"
#include "worker/torch/model/examination.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/random_scope.h"
#include "worker/torch/plan/bound_program.h"

namespace lockstep::exported {
namespace {

constexpr uint64_t kTrialKey = 1;
constexpr uint64_t kTrialSamples = 2;

Status refuse(const std::string& what) {
  return {Code::kConfig, what};
}

// Writes to running statistics in a way that evaluation switches off.
bool is_norm(const ProgramNode& node) {
  return node.target.find("batch_norm") != std::string::npos ||
         node.target.find("instance_norm") != std::string::npos;
}

class ExaminedProgram final : public ExaminedModel {
 public:
  ExaminedProgram(const ProgramPlan& plan, const ProgramRoles& roles,
                  const data::SampleShape& shape, uint32_t classes)
      : plan_(plan), roles_(roles), shape_(shape), classes_(classes) {
    for (const ProgramTensor& t : program().tensors) {
      tensors_.push_back(tensor_of(t));
      if (is_trained(tensors_.size() - 1)) tensors_.back().set_requires_grad(true);
    }
  }

  size_t tensors() const override { return tensors_.size(); }
  std::string name(size_t i) const override { return program().tensors[i].name(); }
  bool is_trained(size_t i) const override {
    return program().tensors[i].is_parameter && program().tensors[i].requires_grad;
  }
  at::Tensor get(size_t i) const override { return tensors_[i]; }
  void set(size_t i, const at::Tensor& value) override { tensors_[i] = value; }
  std::optional<std::string> reader_of(size_t tensor) const override {
    for (size_t i = 0; i < program().inputs.size(); ++i) {
      const ProgramInput& input = program().inputs[i];
      const bool is_tensor = input.kind == InputKind::kBuffer || input.kind == InputKind::kConstant;
      if (!is_tensor || input.tensor != tensor) continue;
      if (const ProgramNode* reader = plan_.reader_of(i); reader != nullptr)
        return text_of(*reader);
    }
    return "";
  }
  std::string writer_of(size_t tensor) const override {
    const ProgramNode* const node = writer(tensor);
    return node == nullptr ? "" : text_of(*node);
  }
  at::Tensor train(uint64_t batch) override;

  // The operator that wrote last to a tensor, other than a norm. Null: no operator did.
  const ProgramNode* writer(size_t i) const {
    const auto found = writers_.find(i);
    return found == writers_.end() ? nullptr : found->second;
  }

 private:
  const Program& program() const { return plan_.program(); }

  const ProgramPlan& plan_;
  const ProgramRoles& roles_;
  const data::SampleShape& shape_;
  const uint32_t classes_;
  std::vector<at::Tensor> tensors_;
  std::map<size_t, const ProgramNode*> writers_;
};

at::Tensor ExaminedProgram::train(uint64_t batch) {
  const RandomScope random(kTrialKey, at::kCPU);
  const auto& user_inputs = program().user_inputs;
  const ModelInputs given = sample_inputs(shape_, batch, classes_);
  const at::Tensor x = input_of(user_inputs[roles_.x], given.x);
  const auto field_of = [&](uint32_t user_input) {
    return std::find_if(roles_.fields.begin(), roles_.fields.end(),
                        [&](const auto& field) { return field.user_input == user_input; });
  };
  std::vector<at::Tensor> inputs;
  for (const ProgramInput& input : program().inputs) {
    const bool is_own = input.kind == InputKind::kParameter || input.kind == InputKind::kBuffer ||
                        input.kind == InputKind::kConstant;
    if (is_own) {
      inputs.push_back(tensors_[input.tensor]);
    } else if (input.kind == InputKind::kUser && roles_.labels == input.user_input) {
      inputs.push_back(labels_of(user_inputs[input.user_input], given.labels));
    } else if (input.kind == InputKind::kUser &&
               field_of(input.user_input) != roles_.fields.end()) {
      inputs.push_back(labels_of(user_inputs[input.user_input],
                                 given.fields.all[field_of(input.user_input)->field]));
    } else {
      inputs.push_back(input.kind == InputKind::kUser ? x : at::Tensor());
    }
  }
  std::vector<uint32_t> versions;
  for (const at::Tensor& t : tensors_) versions.push_back(t._version());
  const ProgramPlan::Watcher watcher = [&](const Instruction& instruction) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i]._version() == versions[i]) continue;
      versions[i] = tensors_[i]._version();
      if (!is_norm(*instruction.node)) writers_[i] = instruction.node;
    }
  };
  return plan_.run(inputs, nullptr, &watcher).at(roles_.losses);
}

// The constant that an instruction gives to the argument of this name; null if there is none.
const c10::IValue* constant_of(const Instruction& instruction, std::string_view name) {
  const auto& wanted = instruction.call->schema().arguments();
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].name() == name) return instruction.arguments[i].constant();
  return nullptr;
}

// True for an operator that could draw random numbers, and that evaluation has switched off.
bool is_switched_off(const Instruction& instruction) {
  for (const char* const name : {"train", "training"}) {
    const c10::IValue* const value = constant_of(instruction, name);
    if (value != nullptr && value->isBool() && !value->toBool()) return true;
  }
  const c10::IValue* const p = constant_of(instruction, "dropout_p");
  return p != nullptr && p->isDouble() && p->toDouble() == 0;
}

Result<std::string> draws_in_evaluation(const ProgramPlan& plan) {
  ProgramPlan::Options options;
  options.is_evaluation = true;
  LOCKSTEP_ASSIGN_OR_RETURN(const ProgramPlan switched,
                            ProgramPlan::compile(plan.shared_program(), options));
  for (const Instruction& instruction : switched.instructions()) {
    if (instruction.kind != NodeKind::kOperator ||
        !instruction.call->hasTag(at::Tag::nondeterministic_seeded) || is_switched_off(instruction))
      continue;
    return "draws random numbers in " + text_of(*instruction.node);
  }
  return std::string();
}

Result<std::string> why_eval_program(const ExaminedProgram& model, const ProgramPlan& plan,
                                     const TensorKinds& kinds) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string why, draws_in_evaluation(plan));
  if (!why.empty()) return why;
  for (const size_t i : kinds.statistics) {
    if (const ProgramNode* node = model.writer(i); node != nullptr)
      return "writes its buffer " + model.name(i) + " in " + text_of(*node);
  }
  return why;
}

// "weight, bias and 3 more".
std::string first_of(const std::vector<std::string>& names) {
  constexpr size_t kTold = 4;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kTold); ++i) out += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kTold) out += " and " + std::to_string(names.size() - kTold) + " more";
  return out;
}

// Every operator on the way from the parameters to the output needs a derivative. Marks the
// parameters that get no gradient.
Status check_backward(ExaminedProgram& model, const TensorKinds& kinds, uint64_t samples,
                      ProgramParts* parts) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor out = model.train(samples);
  if (!out.requires_grad()) return Status::ok();  // check_start() has the words for it
  std::vector<at::Tensor> parameters;
  for (const size_t i : kinds.parameters) parameters.push_back(model.get(i));
  try {
    const std::vector<at::Tensor> gradients = torch::autograd::grad(
        {out}, parameters, {at::ones_like(out)}, /*retain_graph=*/std::nullopt,
        /*create_graph=*/false, /*allow_unused=*/true);
    std::vector<std::string> without;
    for (size_t i = 0; i < gradients.size(); ++i) {
      parts->layout.parameters[i].gets_gradient = gradients[i].defined();
      if (!gradients[i].defined()) without.push_back(model.name(kinds.parameters[i]));
    }
    if (!without.empty())
      parts->notes.push_back("has " + std::to_string(without.size()) +
                             " parameters that get no gradient, because its output does not depend "
                             "on them: they stay as they are: " +
                             first_of(without) +
                             ". If they are to be trained, look for detach(), no_grad() and "
                             "functions with a backward of their own, which torch.export drops");
    return Status::ok();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    return refuse("has no backward: " + one_line(error));
  }
}

// A parameter or buffer, and not a tensor of a line of code.
bool is_named(const Program& program, size_t tensor) {
  return std::ranges::any_of(program.inputs, [&](const ProgramInput& input) {
    return input.tensor == tensor &&
           (input.kind == InputKind::kParameter || input.kind == InputKind::kBuffer);
  });
}

ModelLayout layout_of(const Program& program, const TensorKinds& kinds,
                      const ExaminedProgram& model) {
  ModelLayout layout;
  for (const size_t i : kinds.parameters) {
    const ProgramTensor& t = program.tensors[i];
    layout.parameters.push_back({.name = t.name(),
                                 .shape = t.shape,
                                 .values = row_major_floats(t),
                                 .tied_names = {t.names.begin() + 1, t.names.end()}});
  }
  for (const size_t i : kinds.statistics) {
    const ProgramTensor& t = program.tensors[i];
    layout.buffers.push_back({.name = t.name(),
                              .size = static_cast<int64_t>(t.elements()),
                              .values = row_major_floats(t),
                              .shape = t.shape});
  }
  for (const size_t i : kinds.counters)
    layout.step_counters.push_back({model.name(i), model.get(i).item<int64_t>()});
  for (const size_t i : kinds.constants) {
    const ProgramTensor& t = program.tensors[i];
    const char* type = safetensors_type(torch_type(t.dtype));
    if (t.is_persistent && type != nullptr && is_named(program, i))
      layout.constants.push_back({t.names, type, t.shape, [t] {
                                    std::vector<uint8_t> bytes(t.elements() * bytes_of(t.dtype));
                                    gather(t, bytes.data());
                                    return bytes;
                                  }});
  }
  return layout;
}

std::string text_of(const UserInput& input) {
  std::string out = std::string(name_of(input.dtype)) + " (";
  for (size_t i = 0; i < input.shape.size(); ++i) {
    const UserDim& dim = input.shape[i];
    if (i > 0) out += ", ";
    out += dim.sizes.min == dim.sizes.max ? std::to_string(dim.sizes.min) : dim.symbol;
  }
  return out + ")";
}

bool takes(const UserDim& dim, int64_t size) {
  return dim.sizes.min <= size && size <= dim.sizes.max;
}

Status check_labels(const UserInput& input, const data::SampleShape& shape) {
  const bool is_type = input.dtype == ProgramDtype::kLong || input.dtype == ProgramDtype::kFloat;
  const size_t dims = shape.is_sequence() ? 2 : 1;
  const bool fits =
      is_type && input.shape.size() == dims && (dims == 1 || takes(input.shape[1], shape.tokens));
  if (fits) return Status::ok();
  return refuse("takes labels " + text_of(input) + ", but the data give " +
                (dims == 1 ? std::string("one a sample, (batch)")
                           : "one a token, (batch, " + std::to_string(shape.tokens) + ")") +
                " as int64 or float32: export it with an example in this shape");
}

Status check_field(const UserInput& input, const data::FieldSpec& field) {
  const auto is = [&](ProgramDtype dtype) { return input.dtype == dtype; };
  const bool is_whole = field.type != data::FieldType::kF32;
  const bool is_type =
      is(ProgramDtype::kFloat) ||
      (is_whole && (is(ProgramDtype::kLong) || is(ProgramDtype::kByte) || is(ProgramDtype::kBool)));
  bool fits = is_type && input.shape.size() == field.dims.size() + 1;
  for (size_t d = 0; fits && d < field.dims.size(); ++d)
    fits = takes(input.shape[d + 1], field.dims[d]);
  if (fits) return Status::ok();
  std::string sizes;
  for (const uint32_t dim : field.dims) sizes += ", " + std::to_string(dim);
  return refuse("takes " + printable(input.name) + " as " + text_of(input) +
                ", but the data give " + printable(field.name) + " (batch" + sizes + ") as " +
                (is_whole ? "whole numbers, for int64, uint8, bool or float32" : "float32") +
                ": export it with an example in this shape and type");
}

}  // namespace

BatchRange batches_of(const Program& program) {
  const auto samples = [](int64_t n) { return static_cast<uint64_t>(std::max<int64_t>(1, n)); };
  return {samples(program.samples.min), samples(program.samples.max)};
}

uint64_t batch_near(const Program& program, uint64_t wanted) {
  const BatchRange range = batches_of(program);
  return std::min(std::max(wanted, range.min), range.max);
}

Status check_signature(const Program& program, const ProgramRoles& roles,
                       const data::SampleShape& shape, uint32_t classes) {
  if (roles.labels)
    LOCKSTEP_RETURN_IF_ERROR(check_labels(program.user_inputs[*roles.labels], shape));
  for (const ProgramRoles::Field& field : roles.fields)
    LOCKSTEP_RETURN_IF_ERROR(
        check_field(program.user_inputs[field.user_input], shape.fields->specs()[field.field]));
  const UserInput& input = program.user_inputs[roles.x];
  const at::Tensor x = sample_input(shape, batch_near(program, kTrialSamples), classes);
  const bool is_type = torch_type(input.dtype) == x.scalar_type();
  bool fits = is_type && static_cast<size_t>(x.dim()) == input.shape.size();
  for (int64_t d = 1; fits && d < x.dim(); ++d)
    fits = takes(input.shape[static_cast<size_t>(d)], x.size(d));
  std::string sizes;
  for (int64_t d = 1; d < x.dim(); ++d) sizes += ", " + std::to_string(x.size(d));
  if (!fits)
    return refuse("takes an input " + text_of(input) + ", but the data give " +
                  (x.scalar_type() == at::kLong ? "int64" : "float32") + " (batch" + sizes +
                  "): export it with an example in this shape");
  if (shape.is_padded && !takes(input.shape[1], data::kWidthStep))
    return refuse("takes " + text_of(input) + ", but with data.documents: pad batches have from " +
                  std::to_string(data::kWidthStep) +
                  " tokens to model.block: export it with a dynamic number of tokens, or set "
                  "data.documents to stream");
  return Status::ok();
}

Result<ProgramParts> examine_program(const ProgramPlan& plan, const ProgramRoles& roles,
                                     const data::SampleShape& shape, uint32_t classes) {
  const Program& program = plan.program();
  ExaminedProgram model(plan, roles, shape, classes);
  const uint64_t first = batch_near(program, kTrialSamples);
  const bool has_one = first != 1 && batch_near(program, 1) == 1;
  LOCKSTEP_ASSIGN_OR_RETURN(TensorKinds kinds,
                            examine(model, {.first = first, .has_one = has_one}));
  if (kinds.parameters.empty())
    return refuse(
        "has no parameters to train: export a module with requires_grad where something "
        "is to be learnt");
  ProgramParts out;
  LOCKSTEP_ASSIGN_OR_RETURN(out.needs_eval_program, why_eval_program(model, plan, kinds));
  out.layout = layout_of(program, kinds, model);
  out.layout.own_loss = roles.own_loss(program);
  if (!kinds.one_sample_error.empty()) {
    out.layout.batch_norm_values = 1;
    out.layout.batch_norm_layer = "the program (\"" + kinds.one_sample_error + "\")";
  }
  LOCKSTEP_RETURN_IF_ERROR(
      check_backward(model, kinds, batch_near(program, kTrialSamples + 1), &out));
  for (const size_t i : kinds.statistics)
    if (const ProgramNode* node = model.writer(i); node != nullptr)
      out.notes.push_back("writes its buffer " + model.name(i) + " in " + text_of(*node) +
                          ": after a step it is the mean over the slots");
  out.parameters = std::move(kinds.parameters);
  out.statistics = std::move(kinds.statistics);
  out.counters = std::move(kinds.counters);
  return out;
}

}  // namespace lockstep::exported
