#include "deploy/cli/run/check_exported_model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "comm/base/text/printable.h"
#include "comm/base/text/shell_word.h"
#include "comm/wire/data_formats.h"
#include "comm/wire/loss_kind.h"
#include "worker/model/exported/read_program.h"
#include "worker/model/exported/roles.h"

namespace lockstep {
namespace {

using exported::Program;
using exported::ProgramTensor;
using exported::UserInput;

Status refused_program(const std::string& path, const std::string& what) {
  return {Code::kConfig, "the exported program " + shell_word(path) + " " + what};
}

// What a loss of one's own cannot go with.
Status check_own_loss(const wire::JobSpec& job) {
  const auto unfit = [](const std::string& key, const std::string& advice) {
    return Status(Code::kUsage,
                  key + " does not go with a model that gives its own loss; " + advice);
  };
  if (loss_kind(job.train()) != LossKind::kCrossEntropy)
    return unfit("train.loss " + job.train().loss(), "leave it out");
  if (job.train().label_smoothing() > 0)
    return unfit("train.label_smoothing", "smooth them in the model, and leave it out");
  for (const std::string& word : job.data().transforms())
    if (word.starts_with("mixup") || word.starts_with("cutmix"))
      return unfit("the transform " + shell_word(word), "take it out of data.transforms");
  if (job.checkpoint().best() == "accuracy")
    return unfit("checkpoint.best accuracy", "use checkpoint.best: loss");
  return Status::ok();
}

// A batch of tokens is (batch, model.block) of int64, any other one begins with its samples.
Status check_input(const Program& program, const std::string& path, const wire::JobSpec& job) {
  const bool is_tokens = is_token_format(job.data().train().format());
  // Which column is the label then, only the data say, and the worker looks.
  if (!job.data().weight().empty() && job.data().targets().empty()) return Status::ok();
  const auto roles = exported::roles_of(program, is_tokens, exported::field_names(job.data()));
  if (!roles.is_ok())
    return {roles.status().code(),
            "the exported program " + shell_word(path) + " " + roles.status().message()};
  if (roles->gives_losses) LOCKSTEP_RETURN_IF_ERROR(check_own_loss(job));
  const UserInput& input = program.user_inputs[roles->x];
  const auto wanted = is_tokens ? exported::ProgramDtype::kLong : exported::ProgramDtype::kFloat;
  const std::string takes = "takes the input " + printable(input.name) + " of ";
  if (input.dtype != wanted)
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

Status check_same_parameters(const Program& training, const Program& evaluation,
                             const wire::JobSpec& job) {
  std::map<std::string, const ProgramTensor*> known;
  for (const ProgramTensor& tensor : training.tensors)
    for (const std::string& name : tensor.names) known[name] = &tensor;
  for (const ProgramTensor& tensor : evaluation.tensors) {
    if (!tensor.is_parameter || !tensor.requires_grad) continue;
    const auto found = known.find(tensor.name());
    if (found != known.end() && found->second->shape == tensor.shape) continue;
    return refused_program(job.model().eval_path(),
                           "has a parameter " + printable(tensor.name()) +
                               (found == known.end() ? " that " : " of another shape than in ") +
                               shell_word(job.model().path()) +
                               (found == known.end() ? " lacks" : "") +
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
    LOCKSTEP_RETURN_IF_ERROR(check_same_parameters(*training, *evaluation, job));
  }
  return check_batches(*training, *evaluation, job);
}

}  // namespace lockstep
