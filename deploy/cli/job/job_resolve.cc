#include "deploy/cli/job/job_resolve.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "comm/base/limits.h"
#include "comm/base/step_window.h"
#include "comm/net/network.h"
#include "comm/run/job/bucket_size.h"
#include "comm/run/job/data_formats.h"
#include "comm/run/job/models/model_table.h"
#include "comm/run/job/predictions.h"
#include "data/source/url.h"
#include "data/transform/transform_list.h"
#include "deploy/cli/job/check_fields.h"
#include "deploy/cli/job/job_documents.h"
#include "deploy/cli/job/job_evaluation.h"
#include "deploy/cli/job/job_formats.h"
#include "deploy/cli/job/job_loss.h"
#include "deploy/cli/job/job_model_file.h"
#include "deploy/cli/job/job_network.h"
#include "deploy/cli/job/job_precision.h"
#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/job/job_script.h"
#include "deploy/cli/job/job_split.h"
#include "deploy/cli/job/job_tokenizer.h"
#include "deploy/cli/job/job_told.h"
#include "deploy/cli/keys/job_list.h"
#include "deploy/cli/script/script_keys.h"

namespace lockstep {
namespace {

constexpr uint32_t kMostWorkersByDefault = 8;

// A script's work before its first batch, and after its loop, may take minutes.
constexpr std::string_view kScriptSeconds = "600";

constexpr std::string_view kWhereAScriptSays =
    ". Write it into the script's block of job keys (# /// lockstep), or behind the script, as in "
    "train.global_batch=256";

bool is_script_wait(std::string_view key) {
  return key == "cluster.start_timeout_s" || key == "cluster.leave_s";
}

std::string default_text(const JobKey& row, const wire::JobSpec& job) {
  if (row.key == "train.eval_batch" && learns_from_tokens(job.model()))
    return std::to_string(kSequenceEvalBatch);
  if (is_script_wait(row.key) && is_script(job.model())) return std::string(kScriptSeconds);
  if (row.named_defaults.empty()) return std::string(row.default_text);
  const std::string name_key = std::string(row.key.substr(0, row.key.rfind('.'))) + ".name";
  const std::string name = job_value(*find_job_key(name_key), job)[0];
  for (const NamedDefault& other : row.named_defaults)
    if (other.name == name) return std::string(other.text);
  return std::string(row.default_text);
}

Status set_default(const JobValues& values, const JobKey& row, size_t element, wire::JobSpec& job) {
  const std::string key = numbered_key(row, element);
  if (values.count(key)) return Status::ok();
  const bool is_of_script = is_script(job.model());
  if (is_of_script && (row.key == "model.name" || row.key == "data.train.path"))
    return Status::ok();
  if (row.required())
    return Status(Code::kUsage, key + " is missing: " + std::string(row.meaning) +
                                    (is_of_script ? std::string(kWhereAScriptSays) : ""));
  if (!row.by_machine.empty()) return Status::ok();
  const bool has_no_data = is_of_script && job.data().train().path().empty();
  const bool has_images = !has_no_data && !learns_from_tokens(job.model());
  if (row.key == "data.transforms" && !has_images) return Status::ok();
  return set_job_value(row, {default_text(row, job)}, job, element);
}

Status set_defaults(const JobValues& values, wire::JobSpec& job) {
  for (const JobKey& row : job_keys()) {
    const size_t elements = list_of(row).empty() ? 1 : list_size(list_of(row), job);
    for (size_t element = 0; element < elements; ++element)
      LOCKSTEP_RETURN_IF_ERROR(set_default(values, row, element, job));
  }
  return Status::ok();
}

Status set_one(const std::string& key, const JobValue& value, wire::JobSpec& job) {
  constexpr size_t kMost = limits::kMixedDatasets - 1;  // and data.train
  const bool is_whole_list = is_job_list(key);
  const size_t elements = is_whole_list ? std::stoul(value.items[0]) : element_of(key) + 1;
  if (elements > 1 && elements > kMost)
    return Status(Code::kUsage, key + ": a list of maps has at most " + std::to_string(kMost));
  if (!is_whole_list) return set_job_value(*find_job_key(key), value.items, job, element_of(key));
  set_list_size(key, elements, job);
  return Status::ok();
}

// A list of maps comes before the keys of its maps.
Status set_given(const JobValues& values, wire::JobSpec& job) {
  for (const auto& [key, value] : values) {
    const Status status = set_one(key, value, job);
    if (!status.is_ok()) return status.with_context(value.origin);
  }
  return Status::ok();
}

std::string absolute_path(const std::string& path, const JobValue& value,
                          const JobContext& context) {
  if (path.empty() || path[0] == '/' || source::is_url(path)) return path;
  const std::filesystem::path base =
      value.from_file ? context.file_directory : context.working_directory;
  return (base / path).lexically_normal().string();
}

std::string mix_key(int element, const char* leaf) {
  return "data.mix." + std::to_string(element) + "." + leaf;
}

// Before the path is made absolute, which would make one slash of two.
Status check_cache_dir(const JobValues& values, const wire::JobSpec& job) {
  const std::string_view key = "data.cache_dir";
  if (values.count(std::string(key)) == 0 || !source::has_scheme(job.data().cache_dir()))
    return Status::ok();
  return {Code::kUsage, told(values, key, job) +
                            ": it is a URL, and Lockstep keeps caches in directories; name a path "
                            "of the machines that train"};
}

// Makes the given paths absolute.
Status set_paths(const JobValues& values, const JobContext& context, wire::JobSpec& job) {
  for (const JobKey& row : job_keys()) {
    if (!row.is_path) continue;
    const size_t elements = list_of(row).empty() ? 1 : list_size(list_of(row), job);
    for (size_t element = 0; element < elements; ++element) {
      const auto it = values.find(numbered_key(row, element));
      if (it == values.end()) continue;
      const std::string path = absolute_path(job_value(row, job, element)[0], it->second, context);
      LOCKSTEP_RETURN_IF_ERROR(set_job_value(row, {path}, job, element));
    }
  }
  return Status::ok();
}

// Evaluation data where the training data are, unless something else was said.
Status find_eval(const JobValues& values, const JobContext& context, wire::JobSpec& job) {
  wire::DataSpec& data = *job.mutable_data();
  const bool eval_said = values.count("data.eval.path") > 0 || context.stored != nullptr;
  if (eval_said || data.train().path().empty()) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string train, context.local_path(data, data.train().path()));
  if (context.has_eval_files(data, train)) data.mutable_eval()->set_path(data.train().path());
  return Status::ok();
}

// The micro-batches of each worker of the first start. 0: the run began before the key was there.
uint32_t micro_batches(const wire::TrainSpec& train) {
  return std::max(1u, train.accumulate());
}

// One a GPU, or as many as there are cores for their threads.
uint32_t workers_that_fit(const JobContext& context, const std::string& device,
                          const wire::TrainSpec& train) {
  const auto gpus = device == "cuda" ? context.count_gpus() : Result<uint32_t>(0);
  if (gpus.is_ok() && *gpus > 0) return *gpus;
  const uint32_t cores = std::max(1u, context.cores / std::max(1u, train.threads_per_worker()));
  return std::min(cores, kMostWorkersByDefault);
}

// Workers with a GPU each, as far as this machine shows, where NCCL may go. They find out whether
// it works (comm/collectives/device_trial.h).
bool may_try_nccl(const wire::JobSpec& job, const JobContext& context) {
  if (job.cluster().device() != "cuda" || job.cluster().workers() < 2) return false;
  const auto network = rpc::parse_network(job.comm().network());
  if (!network.is_ok() || (!network->is_loopback() && !job.comm().trusted_network())) return false;
  const auto gpus = context.count_gpus();
  return gpus.is_ok() && (!context.sees_gpus_of_all_workers || *gpus >= job.cluster().workers());
}

void resolve_autos(const JobContext& context, wire::JobSpec& job) {
  if (const ModelRow* model = find_model(job.model().name()); model != nullptr && model->resolve)
    model->resolve(job.mutable_model());
  auto& cluster = *job.mutable_cluster();
  auto& train = *job.mutable_train();
  if (cluster.device() == "auto") {
    const bool takes_gpus = !is_script(job.model()) && context.count_gpus().is_ok();
    cluster.set_device(takes_gpus ? "cuda" : "cpu");
  }
  if (cluster.workers() == 0) {
    cluster.set_workers(workers_that_fit(context, cluster.device(), train));
    if (train.slots() > 0) cluster.set_workers(std::min(cluster.workers(), train.slots()));
    if (train.global_batch() > 0) {
      const uint64_t most =
          std::min<uint64_t>(cluster.workers(), train.global_batch() / micro_batches(train));
      cluster.set_workers(static_cast<uint32_t>(std::max<uint64_t>(1, most)));
    }
  }
  if (train.slots() == 0) {
    const uint64_t slots = uint64_t{cluster.workers()} * micro_batches(train);
    // One above what there can be is refused with what it came from.
    train.set_slots(static_cast<uint32_t>(std::min<uint64_t>(slots, limits::kSlots + 1)));
  }
  // Only of a run that was begun before these keys were there.
  if (cluster.min_workers() == 0) cluster.set_min_workers(1);
  if (cluster.min_wait_s() == 0) cluster.set_min_wait_s(600);
  if (job.comm().backend() == "auto" && (is_script(job.model()) || !may_try_nccl(job, context)))
    job.mutable_comm()->set_backend("host");
}

// With comm.backend auto only the workers know who sums: it stays 0.
void resolve_buckets(wire::JobSpec& job) {
  if (job.comm().bucket_mb() != 0 || job.comm().backend() == "auto") return;
  job.mutable_comm()->set_bucket_mb(job.comm().backend() == "nccl" ? kNcclBucketMib : kBucketMib);
}

bool is_job_name(const std::string& name) {
  return name.size() <= 64 && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
         });
}

// On a resume both stand as they were resolved, and the workers may be others.
Status check_accumulate(const JobValues& values, const JobContext& context,
                        const wire::JobSpec& job) {
  const uint64_t slots = uint64_t{job.cluster().workers()} * micro_batches(job.train());
  if (context.stored != nullptr || job.train().accumulate() <= 1) return Status::ok();
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  if (slots > limits::kSlots)
    return Status(Code::kUsage, say("train.accumulate") + " and " + say("cluster.workers") +
                                    ": that makes " + std::to_string(slots) + " slots, more than " +
                                    std::to_string(limits::kSlots));
  if (job.train().slots() != slots)
    return Status(Code::kUsage, say("train.accumulate") + " but " + say("train.slots") + ": with " +
                                    std::to_string(job.cluster().workers()) +
                                    " workers the first one asks for " + std::to_string(slots) +
                                    " slots; leave one of the two out");
  return Status::ok();
}

// A model of tokens needs tokens, the others images; of one from a file the training data decide.
Status check_model_fits_data(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  LOCKSTEP_RETURN_IF_ERROR(check_model_file(values, job));
  const bool wants_tokens = takes_tokens(job);
  const ModelRow* model = find_model(job.model().name());
  if (model != nullptr && model->check) LOCKSTEP_RETURN_IF_ERROR(model->check(job.model()));
  const auto check = [&](const std::string& key, const auto& set) {
    if (set.path().empty() || is_token_format(set.format()) == wants_tokens) return Status::ok();
    if (is_from_file(job.model()) || is_script(job.model()))
      return Status(Code::kUsage, say("data.train.format") + " but " + say(key) +
                                      ": both must be images, or both tokens");
    return Status(Code::kUsage,
                  say("model.name") + " but " + say(key) + ": " +
                      (wants_tokens ? job.model().name() : "only " + models_of_tokens()) +
                      " learns from tokens or text");
  };
  LOCKSTEP_RETURN_IF_ERROR(check("data.train.format", job.data().train()));
  LOCKSTEP_RETURN_IF_ERROR(check("data.eval.format", job.data().eval()));
  for (int i = 0; i < job.data().mix_size(); ++i)
    LOCKSTEP_RETURN_IF_ERROR(check(mix_key(i, "format"), job.data().mix(i)));
  if (wants_tokens && job.data().transforms_size() > 0)
    return Status(Code::kUsage,
                  say("data.transforms") + ": that is for images; " +
                      (learns_from_tokens(job.model()) ? job.model().name() + " takes tokens"
                                                       : "tokens are taken") +
                      " as they are");
  return Status::ok();
}

Status check_device(const JobValues& values, const JobContext& context, const wire::JobSpec& job) {
  const bool is_nccl = job.comm().backend() == "nccl";
  const auto needs = [&](const std::string& what) {
    return Status(Code::kConfig, told(values, "comm.backend", job) +
                                     ": it sums between GPUs, and " + what + "; take host or auto");
  };
  if (job.cluster().device() != "cuda")
    return is_nccl ? needs(told(values, "cluster.device", job)) : Status::ok();
  const auto gpus = context.count_gpus();
  if (gpus.is_ok() && is_nccl && context.sees_gpus_of_all_workers &&
      *gpus < job.cluster().workers())
    return needs("each worker needs a GPU of its own: there are " + std::to_string(*gpus) +
                 " for " + std::to_string(job.cluster().workers()) + " workers");
  if (gpus.is_ok()) return Status::ok();
  return Status(gpus.status().code(), told(values, "cluster.device", job) + ": " +
                                          gpus.status().message() + "; take cpu or auto");
}

// Checks that the values fit together.
Status check_together(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  const auto usage = [](const std::string& message) { return Status(Code::kUsage, message); };
  const auto& train = job.train();
  if (!is_job_name(job.job()))
    return usage(say("job") +
                 ": a name has at most 64 letters, digits, '.', '-' and '_', and does "
                 "not begin with '.'");
  LOCKSTEP_RETURN_IF_ERROR(check_model_fits_data(values, job));
  LOCKSTEP_RETURN_IF_ERROR(check_tokenizer(values, job));
  LOCKSTEP_RETURN_IF_ERROR(check_documents(values, job));
  LOCKSTEP_RETURN_IF_ERROR(check_evaluation(values, job));
  LOCKSTEP_RETURN_IF_ERROR(check_loss(values, job));
  LOCKSTEP_RETURN_IF_ERROR(check_precision(values, job));
  LOCKSTEP_RETURN_IF_ERROR(check_fields(values, job));
  const wire::PruneSpec& prune = train.prune();
  if (prune.sparsity() > 0 && prune.to() <= prune.from())
    return usage(say("train.prune.to") + " but " + say("train.prune.from") +
                 ": name the steps between which the share of zeros grows to "
                 "train.prune.sparsity, the later one as train.prune.to");
  if (prune.sparsity() > 0 && train.max_steps() > 0 && prune.to() > train.max_steps())
    return usage(say("train.prune.to") + " but " + say("train.max_steps") +
                 ": the run would end with fewer zeros than train.prune.sparsity; end the pruning "
                 "with the run or before");
  if (prune.sparsity() == 0 && prune.from() + prune.to() + prune.every() > 0)
    return usage(say("train.prune.sparsity") +
                 ", so no weight becomes zero; name the share of them, or leave out the other keys "
                 "of train.prune");
  const auto& transforms = job.data().transforms();
  LOCKSTEP_RETURN_IF_ERROR(data::parse_transforms({transforms.begin(), transforms.end()}).status());
  if (train.epochs() == 0 && train.max_steps() == 0)
    return usage("the job has no length: set train.epochs or train.max_steps");
  if (train.global_batch() > 0 && train.slots() > train.global_batch())
    return usage(say("train.slots") + " but " + say("train.global_batch") +
                 ": every slot needs a sample, so slots can be at most the global batch");
  if (train.loss_spike() > 0 && train.loss_spike() <= 1)
    return usage(say("train.loss_spike") +
                 ": every second step has a loss above the median; take a number above 1, such as "
                 "10, or 0");
  if (const auto window = parse_step_window(train.trace()); !window.is_ok())
    return usage(say("train.trace") + ": " + window.status().message());
  if (job.cluster().workers() > train.slots())
    return usage(say("cluster.workers") + " but " + say("train.slots") +
                 ": a worker without a slot has nothing to do; take at most " +
                 std::to_string(train.slots()) + " workers");
  if (job.cluster().min_workers() > job.cluster().workers())
    return usage(say("cluster.min_workers") + " but " + say("cluster.workers") +
                 ": the run would wait for workers that nobody starts");
  LOCKSTEP_RETURN_IF_ERROR(check_network(values, job));
  if (job.schedule().name() == "onecycle" && job.schedule().total_steps() > 0 &&
      train.max_steps() > job.schedule().total_steps())
    return usage(say("schedule.total_steps") + " but " + say("train.max_steps") +
                 ": the onecycle schedule would end before the run");
  return Status::ok();
}

}  // namespace

Result<wire::JobSpec> resolve_job(const JobValues& values, const JobContext& context) {
  wire::JobSpec job;
  if (context.stored != nullptr) job = *context.stored;
  const bool is_of_script = is_script_job(values, context.stored);
  LOCKSTEP_RETURN_IF_ERROR(check_script_keys(values, context.stored));
  LOCKSTEP_RETURN_IF_ERROR(set_given(values, job));
  if (is_of_script && context.stored == nullptr) job.mutable_model()->set_name("script");
  if (context.stored == nullptr) LOCKSTEP_RETURN_IF_ERROR(set_defaults(values, job));
  // A resume that asks for 0 slots asks for what the run already resolved.
  if (context.stored != nullptr && job.train().slots() == 0)
    job.mutable_train()->set_slots(context.stored->train().slots());
  // A resume that asks for auto keeps the batch that the run has.
  if (context.stored != nullptr && job.train().global_batch() == 0)
    job.mutable_train()->set_global_batch(context.stored->train().global_batch());
  LOCKSTEP_RETURN_IF_ERROR(check_cache_dir(values, job));
  LOCKSTEP_RETURN_IF_ERROR(set_paths(values, context, job));
  LOCKSTEP_RETURN_IF_ERROR(check_script(values, context, job));
  LOCKSTEP_RETURN_IF_ERROR(find_eval(values, context, job));
  LOCKSTEP_RETURN_IF_ERROR(resolve_split(values, job));
  resolve_autos(context, job);
  resolve_buckets(job);
  LOCKSTEP_RETURN_IF_ERROR(resolve_formats(context, job));
  LOCKSTEP_RETURN_IF_ERROR(resolve_model_file(values, context, job));
  LOCKSTEP_RETURN_IF_ERROR(resolve_initial_weights(values, context, job));
  LOCKSTEP_RETURN_IF_ERROR(resolve_tokenizer(context, job));
  if (context.stored != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(context.check_same_run(*context.stored, job));
  LOCKSTEP_RETURN_IF_ERROR(check_accumulate(values, context, job));
  LOCKSTEP_RETURN_IF_ERROR(check_together(values, job));
  LOCKSTEP_RETURN_IF_ERROR(check_device(values, context, job));
  return job;
}

}  // namespace lockstep
