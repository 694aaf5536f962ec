#include "deploy/cli/job/job_model_file.h"

#include "comm/run/job/data_formats.h"
#include "comm/run/job/predictions.h"
#include "deploy/cli/job/job_told.h"
#include "worker/model/model_file.h"
#include "worker/model/weights/weight_files.h"

namespace lockstep {

bool takes_tokens(const wire::JobSpec& job) {
  if (is_from_file(job.model()) || is_script(job.model()))
    return is_token_format(job.data().train().format());
  return learns_from_tokens(job.model());
}

namespace {

// The data decide which defaults such a job has.
void leave_out_what_is_for_images(const JobValues& values, const JobContext& context,
                                  wire::JobSpec& job) {
  if (context.stored != nullptr || !takes_tokens(job)) return;
  if (!values.count("data.transforms")) job.mutable_data()->clear_transforms();
  if (!values.count("train.eval_batch")) job.mutable_train()->set_eval_batch(kSequenceEvalBatch);
}

// Checks model.block and model.vocab of a model whose input is what the data are.
Status check_tokens(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  const wire::ModelSpec& model = job.model();
  if (takes_tokens(job) && model.block() == 0)
    return {Code::kUsage,
            say("model.block") + ": the training data are tokens (data.train.format " +
                job.data().train().format() + "); set how many tokens make a sequence"};
  if (!takes_tokens(job) && (model.block() > 0 || model.vocab() > 0))
    return {Code::kUsage, say(model.block() > 0 ? "model.block" : "model.vocab") +
                              ": the training data are images, which have no tokens"};
  return Status::ok();
}

// A run without this file at first takes none on a resume: its evaluations would not compare.
Status resolve_eval_file(const JobContext& context, wire::ModelSpec& model) {
  const std::string& path = model.eval_path();
  if (path.empty()) {
    if (model.eval_sha256().empty()) return Status::ok();
    return {Code::kUsage, "model.eval_sha256 is " + model.eval_sha256() +
                              " but model.eval_path is empty: name the program for evaluation"};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, context.hash_model_file(path, kEvalFileKeys));
  if (model.eval_sha256().empty()) model.set_eval_sha256(found);
  return check_model_hash(path, model.eval_sha256(), found, kEvalFileKeys);
}

}  // namespace

Status resolve_model_file(const JobValues& values, const JobContext& context, wire::JobSpec& job) {
  if (is_script(job.model())) leave_out_what_is_for_images(values, context, job);
  if (!is_from_file(job.model())) return Status::ok();
  wire::ModelSpec& model = *job.mutable_model();
  if (model.path().empty())
    return {Code::kUsage, told(values, "model.name", job) + " but " +
                              told(values, "model.path", job) + ": name the model's file"};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string found,
                            context.hash_model_file(model.path(), kModelFileKeys));
  if (model.sha256().empty()) model.set_sha256(found);
  LOCKSTEP_RETURN_IF_ERROR(check_model_hash(model.path(), model.sha256(), found));
  LOCKSTEP_RETURN_IF_ERROR(resolve_eval_file(context, model));
  if (model.name() == "exported" && !model.predict_path().empty())
    LOCKSTEP_RETURN_IF_ERROR(
        context.hash_model_file(model.predict_path(), kPredictFileKeys).status());
  leave_out_what_is_for_images(values, context, job);
  return Status::ok();
}

Status resolve_initial_weights(const JobValues& values, const JobContext& context,
                               wire::JobSpec& job) {
  wire::ModelSpec& model = *job.mutable_model();
  if (model.init().empty()) {
    if (model.init_sha256().empty() && model.init_skip().empty()) return Status::ok();
    return {Code::kUsage,
            told(values, model.init_skip().empty() ? "model.init_sha256" : "model.init_skip", job) +
                " but " + told(values, "model.init", job) + ": name the weights to start from"};
  }
  if (context.stored != nullptr && model.init() == context.stored->model().init())
    return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, context.hash_initial_weights(job));
  LOCKSTEP_RETURN_IF_ERROR(check_weights_hash(model.init(), model.init_sha256(), found));
  model.set_init_sha256(found);
  return Status::ok();
}

Status check_model_file(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  const auto usage = [](const std::string& message) { return Status(Code::kUsage, message); };
  const wire::ModelSpec& model = job.model();
  if (model.name() != "exported" && !(model.eval_path().empty() && model.eval_sha256().empty()))
    return usage(say("model.name") + " but " +
                 say(model.eval_path().empty() ? "model.eval_sha256" : "model.eval_path") +
                 ": a program for evaluation belongs to model.name exported");
  if (model.name() != "exported" && !model.predict_path().empty())
    return usage(say("model.name") + " but " + say("model.predict_path") +
                 ": a program for predictions belongs to model.name exported");
  if (!is_from_file(model)) {
    if (model.path().empty() && model.sha256().empty())
      return is_script(model) ? check_tokens(values, job) : Status::ok();
    return usage(say("model.name") + " but " +
                 say(model.path().empty() ? "model.sha256" : "model.path") +
                 ": a file belongs to model.name exported, torchscript or plugin");
  }
  if (model.dropout() > 0 || model.batch_norm())
    return usage(say("model.name") + " but " +
                 say(model.batch_norm() ? "model.batch_norm" : "model.dropout") +
                 ": only built-in models have this key; change the model's file instead");
  return check_tokens(values, job);
}

}  // namespace lockstep
