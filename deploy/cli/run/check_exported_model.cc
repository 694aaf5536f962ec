#include "deploy/cli/run/check_exported_model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "comm/base/text/printable.h"
#include "comm/base/text/shell_word.h"
#include "comm/run/job/data_formats.h"
#include "comm/run/job/loss_rules.h"
#include "worker/model/exported_program/predict_roles.h"
#include "worker/model/exported_program/read_program.h"
#include "worker/model/exported_program/roles.h"

namespace lockstep {
namespace {

using exported::Program;
using exported::ProgramTensor;
using exported::UserInput;

Status refused_program(const std::string& path, const std::string& what) {
  return {Code::kConfig, "the exported program " + shell_word(path) + " " + what};
}

using RolesFn = Result<exported::ProgramRoles> (*)(const Program&, bool is_of_tokens,
                                                   const exported::FieldNames&);

// A batch of tokens is (batch, model.block) of int64, any other one begins with its samples.
Status check_input(const Program& program, const std::string& path, const wire::JobSpec& job,
                   RolesFn roles_of = exported::roles_of) {
  const bool is_tokens = is_token_format(job.data().train().format());
  // Which column is the label then, only the data say, and the worker looks.
  if (!job.data().weight().empty() && job.data().targets().empty()) return Status::ok();
  const auto roles = roles_of(program, is_tokens, exported::field_names(job.data()));
  if (!roles.is_ok())
    return {roles.status().code(),
            "the exported program " + shell_word(path) + " " + roles.status().message()};
  if (const auto conflict = loss_conflict(job, /*is_own=*/true);
      roles->gives_losses && conflict.has_value())
    return refused_beside_own_loss(*conflict);
  const UserInput& input = program.user_inputs[roles->x];
  const auto wanted = is_tokens ? exported::ProgramDtype::kLong : exported::ProgramDtype::kFloat;
  const std::string takes = "takes the input " + printable(input.name) + " of ";
  // Whether the arrays that a job names hold floats or ids, only the data say, and the worker
  // looks.
  const bool may_be_ids =
      !job.data().inputs().empty() && input.dtype == exported::ProgramDtype::kLong;
  if (input.dtype != wanted && !may_be_ids)
    return refused_program(path, takes + exported::name_of(input.dtype) + ", and the data give " +
                                     exported::name_of(wanted) +
                                     "; export it with an example of that type");
  if (!is_tokens) return Status::ok();
  if (input.shape.size() != 2)
    return refused_program(path, takes + std::to_string(input.shape.size()) +
                                     " dimensions, and sequences give two; export it with an "
                                     "example of (batch, tokens)");
  const auto tokens = static_cast<int64_t>(job.model().block());
  const auto& range = input.shape[1].sizes;
  if (tokens >= range.min && tokens <= range.max) return Status::ok();
  const std::string most = range.max == exported::SizeRange{}.max ? "" : std::to_string(range.max);
  return refused_program(path, "takes sequences of " + std::to_string(range.min) +
                                   (range.max == range.min ? "" : " to " + most) +
                                   " tokens, and model.block is " + std::to_string(tokens) +
                                   "; set model.block, or export it with that length");
}

Status check_batches(const Program& training, const Program& evaluation, const wire::JobSpec& job) {
  const std::string& path = job.model().path();
  const std::string& eval_path = job.model().eval_path().empty() ? path : job.model().eval_path();
  const uint64_t slots = job.train().slots();
  const uint64_t batch = job.train().global_batch();
  if (slots > 0 && batch >= slots) {
    const std::string whose = "a slot of train.global_batch " + std::to_string(batch) +
                              " and train.slots " + std::to_string(slots);
    for (const uint64_t samples : {batch / slots, (batch + slots - 1) / slots})
      LOCKSTEP_RETURN_IF_ERROR(check_batch_size(training, path, samples, whose));
  }
  if (job.data().eval().path().empty()) return Status::ok();
  // Its last batch is what is left over; the worker, which has counted the samples, looks at it.
  const uint64_t eval = job.train().eval_batch();
  if (eval <= static_cast<uint64_t>(std::max<int64_t>(evaluation.samples.max, 0)))
    return Status::ok();
  return check_batch_size(evaluation, eval_path, eval, "an evaluation batch (train.eval_batch)");
}

// `path`: of the other program.
Status check_same_parameters(const Program& training, const Program& other, const std::string& path,
                             const wire::JobSpec& job) {
  std::map<std::string, const ProgramTensor*> known;
  for (const ProgramTensor& tensor : training.tensors)
    for (const std::string& name : tensor.names) known[name] = &tensor;
  for (const ProgramTensor& tensor : other.tensors) {
    if (!tensor.is_parameter || !tensor.requires_grad) continue;
    const auto found = known.find(tensor.name());
    if (found != known.end() && found->second->shape == tensor.shape) continue;
    return refused_program(
        path, "has a parameter " + printable(tensor.name()) +
                  (found == known.end() ? " that " : " of another shape than in ") +
                  shell_word(job.model().path()) + (found == known.end() ? " lacks" : "") +
                  "; export both from one module");
  }
  return Status::ok();
}

}  // namespace

Status check_exported_model(const wire::JobSpec& job) {
  const wire::ModelSpec& model = job.model();
  if (model.name() != "exported") return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto training, exported::read_program(model.path()));
  LOCKSTEP_RETURN_IF_ERROR(check_input(*training, model.path(), job));
  auto evaluation = training;
  if (!model.eval_path().empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(evaluation, exported::read_program(model.eval_path()));
    LOCKSTEP_RETURN_IF_ERROR(check_input(*evaluation, model.eval_path(), job));
    LOCKSTEP_RETURN_IF_ERROR(check_same_parameters(*training, *evaluation, model.eval_path(), job));
  }
  if (const std::string& path = model.predict_path(); !path.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto prediction, exported::read_program(path));
    LOCKSTEP_RETURN_IF_ERROR(check_input(*prediction, path, job, exported::predict_roles));
    LOCKSTEP_RETURN_IF_ERROR(check_same_parameters(*training, *prediction, path, job));
    const uint64_t batch = job.train().eval_batch();  // a smaller one is filled up
    if (batch > static_cast<uint64_t>(std::max<int64_t>(prediction->samples.max, 0)))
      LOCKSTEP_RETURN_IF_ERROR(
          check_batch_size(*prediction, path, batch, "a batch of predictions (train.eval_batch)"));
  }
  return check_batches(*training, *evaluation, job);
}

}  // namespace lockstep
