// An exported program (model.name: exported) as a model: one program for training, and one for
// evaluation, which is the same with its dropouts and norms switched, or a file of its own.
#include <map>
#include <stdexcept>
#include <utility>

#include "comm/base/text/shell_word.h"
#include "worker/model/exported_program/evaluation.h"
#include "worker/model/exported_program/read_program.h"
#include "worker/model/model_file.h"
#include "worker/torch/model/builtin.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/random_scope.h"
#include "worker/torch/plan/bound_program.h"
#include "worker/torch/plan/input_sources.h"
#include "worker/torch/plan/logits_program.h"
#include "worker/torch/plan/program_parts.h"
#include "worker/torch/plan/role_tensors.h"

namespace lockstep {
namespace {

using exported::BoundProgram;
using exported::InputSource;
using exported::Program;
using exported::ProgramParts;
using exported::ProgramPlan;
using exported::ProgramRoles;
using exported::ProgramTensor;

constexpr uint64_t kUsualTrial = 2;  // samples

std::string who_of(const std::string& path) {
  return "the exported program " + shell_word(path);
}

Status with_name(const std::string& path, const Status& status) {
  return {status.code(), who_of(path) + " " + status.message()};
}

// The roles of both programs.
struct Roles {
  ProgramRoles training;
  ProgramRoles evaluation;
};

class Exported final : public Model {
 public:
  Exported(const wire::ModelSpec& spec, const data::SampleShape& shape, uint32_t classes,
           ProgramParts parts, BoundProgram training, BoundProgram evaluation, Roles roles,
           std::unique_ptr<Predictor> predictor, const std::vector<std::string>& more_notes)
      : Model(std::move(parts.layout)),
        path_(spec.path()),
        eval_path_(spec.eval_path().empty() ? spec.path() : spec.eval_path()),
        shape_(shape),
        classes_(classes),
        training_(std::move(training)),
        evaluation_(std::move(evaluation)),
        roles_(std::move(roles)),
        predictor_(std::move(predictor)),
        first_counters_(first_counters(layout())) {
    for (const std::string& note : parts.notes) notes_.push_back(who_of(path_) + " " + note);
    notes_.insert(notes_.end(), more_notes.begin(), more_notes.end());
  }

  Status move_to(at::Device where) override {
    if (where.is_cpu()) return Status::ok();
    if (Status moved = training_.move_to(where); !moved.is_ok()) return with_name(path_, moved);
    if (Status moved = evaluation_.move_to(where); !moved.is_ok())
      return with_name(eval_path_, moved);
    return Status::ok();
  }

  Status check_batch(uint64_t samples, bool training, const std::string& whose) const override {
    return exported::check_batch_size(training ? training_.program() : evaluation_.program(),
                                      training ? path_ : eval_path_, samples, whose);
  }
  std::vector<std::string> notes() const override { return notes_; }

  // Called after a forward in evaluation. A result can be the same on every rank and after a
  // restart only if the forward leaves no change.
  Status check_evaluation() const {
    const std::string changed = evaluation_.changed_tensor();
    if (changed.empty()) return Status::ok();
    return with_name(eval_path_, Status(Code::kConfig, "changes its buffer " + changed +
                                                           " in evaluation; it may change buffers "
                                                           "in training only"));
  }
  BatchRange training_batches() const override { return exported::batches_of(training_.program()); }
  BatchRange evaluation_batches() const override {
    return exported::batches_of(evaluation_.program());
  }
  const Predictor* predictor() const override { return predictor_.get(); }

  // The scope's lock makes the programs this thread's, too.
  ModelOutput forward(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                      std::span<const at::Tensor> buffers, const ForwardMode& mode) const override {
    const RandomScope random(mode.dropout_key, inputs.x.device());
    const std::string who = who_of(mode.training ? path_ : eval_path_);
    return lent_.with(inputs, who, [&](const ModelInputs& lent) {
      return run(lent, parameters, buffers, mode, who);
    });
  }
  void end_trial() { lent_.end_trial(); }

 private:
  ModelOutput run(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                  std::span<const at::Tensor> buffers, const ForwardMode& mode,
                  const std::string& who) const {
    const at::Tensor& x = inputs.x;
    const BoundProgram& program = mode.training ? training_ : evaluation_;
    std::vector<at::Tensor> out;
    try {
      out = program.forward(inputs, parameters, buffers, counters_of(mode), mode.observer);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const std::exception& error) {
      throw std::runtime_error(who + " fails in " + error.what());
    }
    const ProgramRoles& roles = mode.training ? roles_.training : roles_.evaluation;
    if (roles.gives_losses)
      return own_output(own_outputs(out, roles), x, who, layout().own_loss->metrics);
    if (const std::string wrong = wrong_output(out[0], x, shape_, classes_); !wrong.empty())
      throw std::runtime_error(who + " " + wrong);
    return {.logits = out[0]};
  }

  std::span<const int64_t> counters_of(const ForwardMode& mode) const {
    return mode.counters.empty() ? std::span<const int64_t>(first_counters_) : mode.counters;
  }

  const std::string path_;
  const std::string eval_path_;
  const data::SampleShape shape_;
  const uint32_t classes_;
  std::vector<std::string> notes_;
  BoundProgram training_;
  BoundProgram evaluation_;
  const Roles roles_;
  const std::unique_ptr<Predictor> predictor_;
  const std::vector<int64_t> first_counters_;
  LentInputs lent_;
};

// The parameter that a module reports for in replay: its first.
std::function<uint32_t(const std::string&)> parameters_of_modules(const Program& program,
                                                                  const ProgramParts& parts) {
  std::map<std::string, uint32_t> first;
  for (uint32_t i = 0; i < parts.parameters.size(); ++i) {
    const std::string& name = program.tensors[parts.parameters[i]].name();
    const size_t dot = name.rfind('.');
    first.emplace(dot == std::string::npos ? "" : name.substr(0, dot), i);
  }
  return [first = std::move(first)](const std::string& module) {
    const auto found = first.find(module);
    return found == first.end() ? exported::kNobody : found->second;
  };
}

Result<std::shared_ptr<const Program>> open_program(const std::string& path,
                                                    const std::string& sha256,
                                                    const ModelFileKeys& keys) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto program, exported::read_program(path));
  if (!sha256.empty())
    LOCKSTEP_RETURN_IF_ERROR(check_model_hash(path, sha256, program->sha256, keys));
  return program;
}

// Returns `roles` if the program fits the data.
Result<ProgramRoles> fitting(const std::string& path, const Program& program,
                             Result<ProgramRoles> roles, const data::SampleShape& shape,
                             uint32_t classes) {
  if (!roles.is_ok()) return with_name(path, roles.status());
  const Status fits = check_signature(program, *roles, shape, classes);
  if (!fits.is_ok()) return with_name(path, fits);
  return roles;
}

Result<ProgramPlan> compiled(const std::string& path, std::shared_ptr<const Program> program,
                             const ProgramPlan::Options& options) {
  auto plan = ProgramPlan::compile(std::move(program), options);
  if (!plan.is_ok()) return with_name(path, plan.status());
  return plan;
}

Result<ProgramParts> examined(const std::string& path, const ProgramPlan& plan,
                              const ProgramRoles& roles, const data::SampleShape& shape,
                              uint32_t classes) {
  try {
    auto parts = examine_program(plan, roles, shape, classes);
    if (!parts.is_ok()) return with_name(path, parts.status());
    return parts;
  } catch (const std::exception& error) {
    return Status(Code::kConfig, who_of(path) + " fails on samples in the shape of the training " +
                                     "data, in " + one_line(error));
  }
}

Result<BoundProgram> evaluation_of(const wire::ModelSpec& spec, const data::SampleShape& shape,
                                   uint32_t classes, const ProgramPlan& training,
                                   const ProgramParts& parts, Roles* roles,
                                   std::vector<std::string>* notes) {
  const bool is_own = !spec.eval_path().empty();
  const std::string& path = is_own ? spec.eval_path() : spec.path();
  if (!is_own && !parts.needs_eval_program.empty())
    return Status(Code::kConfig,
                  who_of(path) + " cannot be switched to evaluation, because it " +
                      parts.needs_eval_program +
                      ": export the module after model.eval() as well, and set model.eval_path");
  std::shared_ptr<const Program> program = training.shared_program();
  auto sources = Result<std::vector<InputSource>>(
      exported::sources_of(*program, parts, roles->training, /*is_evaluation=*/true));
  roles->evaluation = roles->training;
  if (is_own) {
    LOCKSTEP_ASSIGN_OR_RETURN(program, open_program(path, spec.eval_sha256(), kEvalFileKeys));
    LOCKSTEP_ASSIGN_OR_RETURN(roles->evaluation,
                              fitting(path, *program,
                                      eval_roles(training.program(), roles->training, *program,
                                                 shape.is_sequence(), exported::field_names(shape)),
                                      shape, classes));
    sources = exported::EvalSources(training.program(), parts, notes)
                  .of(who_of(path), *program, roles->evaluation);
    if (!sources.is_ok()) return with_name(path, sources.status());
  }
  ProgramPlan::Options options;
  options.is_evaluation = !is_own;
  LOCKSTEP_ASSIGN_OR_RETURN(ProgramPlan plan, compiled(path, std::move(program), options));
  for (const exported::Instruction& instruction : plan.instructions()) {
    if (!is_own || exported::evaluation_switches(*instruction.node).empty()) continue;
    return with_name(path, Status(Code::kConfig, "calls " + text_of(*instruction.node) +
                                                     " in training mode: export the module after "
                                                     "model.eval()"));
  }
  return BoundProgram(std::move(plan), std::move(options), *std::move(sources));
}

Result<std::unique_ptr<Model>> make_exported(const wire::ModelSpec& spec,
                                             const data::SampleShape& shape, uint32_t classes) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto program, open_program(spec.path(), spec.sha256(), kModelFileKeys));
  Roles roles;
  LOCKSTEP_ASSIGN_OR_RETURN(
      roles.training, fitting(spec.path(), *program,
                              roles_of(*program, shape.is_sequence(), exported::field_names(shape)),
                              shape, classes));
  LOCKSTEP_ASSIGN_OR_RETURN(const ProgramPlan plan, compiled(spec.path(), program, {}));
  LOCKSTEP_ASSIGN_OR_RETURN(ProgramParts parts,
                            examined(spec.path(), plan, roles.training, shape, classes));
  ProgramPlan::Options options;
  options.parameter_of_module = parameters_of_modules(*program, parts);
  LOCKSTEP_ASSIGN_OR_RETURN(ProgramPlan observed, compiled(spec.path(), program, options));
  BoundProgram training(
      std::move(observed), options,
      exported::sources_of(*program, parts, roles.training, /*is_evaluation=*/false));
  std::vector<std::string> notes;
  LOCKSTEP_ASSIGN_OR_RETURN(BoundProgram evaluation,
                            evaluation_of(spec, shape, classes, plan, parts, &roles, &notes));
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto predictor, exported::open_logits_program(
                          spec, shape, parts.layout, [&](const Program& of, const ProgramRoles& r) {
                            return exported::EvalSources(*program, parts, &notes)
                                .of(who_of(spec.predict_path()), of, r);
                          }));
  const TrialBatches batches{batch_near(*program, kUsualTrial),
                             batch_near(evaluation.program(), kUsualTrial)};
  auto model = std::make_unique<Exported>(spec, shape, classes, std::move(parts),
                                          std::move(training), std::move(evaluation),
                                          std::move(roles), std::move(predictor), notes);
  LOCKSTEP_RETURN_IF_ERROR(check_start(*model, who_of(spec.path()), shape, classes, batches));
  LOCKSTEP_RETURN_IF_ERROR(model->check_evaluation());
  model->end_trial();
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

constinit const ModelBuilder kExportedBuilder{"exported", make_exported};

}  // namespace lockstep
