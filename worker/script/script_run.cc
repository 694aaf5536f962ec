#include "worker/script/script_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "comm/base/descriptors.h"
#include "comm/base/limits.h"
#include "comm/base/thread_name.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/environment/process_limit.h"
#include "comm/run/directory/layout.h"
#include "comm/run/evaluation/check_after.h"
#include "comm/run/evaluation/edge.h"
#include "comm/run/plan/job_shuffle.h"
#include "data/base/quiet_signals.h"
#include "data/open/job_sample_cut.h"
#include "worker/device/load_module.h"
#include "worker/process/engine_maker.h"
#include "worker/process/gpu_identity.h"
#include "worker/process/last_wait.h"
#include "worker/process/open_devices.h"
#include "worker/process/python_stacks.h"
#include "worker/process/watch_far_data.h"
#include "worker/script/alone.h"

namespace lockstep {
namespace {

// Python is given so long to take the end of a run that failed, and the training thread to go.
constexpr std::chrono::seconds kLastWait{5};

// Before Python starts its data processes, which inherit it.
std::optional<WorkerOptions> with_stack_memory(std::optional<WorkerOptions> worker) {
  if (worker) worker->stack_memory = make_stack_memory();
  return worker;
}

// `worker`: nothing: the process is alone.
std::string lines_of(const wire::JobSpec& job, const std::optional<WorkerOptions>& worker) {
  const wire::TrainSpec& train = job.train();
  std::string lines;
  const auto add = [&](const char* key, const std::string& value) {
    lines += std::string(key) + "=" + value + "\n";
  };
  add("name", job.job());
  add("seed", std::to_string(job.seed()));
  add("global_batch", std::to_string(train.global_batch()));
  add("slots", std::to_string(train.slots()));
  add("epochs", std::to_string(train.epochs()));
  add("max_steps", std::to_string(train.max_steps()));
  add("check_every", std::to_string(train.check_every()));
  add("threads", std::to_string(std::max(1u, train.threads_per_worker())));
  add("workers", std::to_string(job.cluster().workers()));
  add("eval_batch", std::to_string(std::max(1u, train.eval_batch())));
  add("exact", job.comm().numerics() == "exact" ? "1" : "0");
  add("script_log", worker ? rundir::file_in(worker->run_dir, rundir::kScriptLog) : "");
  add("stack_memory", std::to_string(worker ? worker->stack_memory : -1));
  add("device", job.cluster().device());
  add("backend", job.comm().backend());
  add("gpu", std::to_string(worker ? worker->gpu : 0));
  add("gpu_uuid", worker ? worker->gpu_uuid : "");
  add("has_data", job.data().train().path().empty() ? "0" : "1");
  add("eval_data", std::string(where_eval_data_are(job.data())));
  return lines;
}

// Builds the engine from the facts that the script has given already.
class ScriptEngineMaker final : public EngineMaker {
 public:
  using Make = std::function<Result<std::unique_ptr<ScriptEngine>>(
      const Engine::BufferFactory& make_buffer)>;

  ScriptEngineMaker(Make make, std::atomic<ScriptEngine*>& shown,
                    const std::atomic<bool>& is_stopped, std::atomic<bool>& has_finished,
                    const ScriptData* data, wire::DataFacts facts, const ScriptSaid& said,
                    DeviceModule* module)
      : make_(std::move(make)),
        shown_(shown),
        is_stopped_(is_stopped),
        has_finished_(has_finished),
        data_(data),
        facts_(std::move(facts)),
        said_(said),
        module_(module) {}

  Result<MadeEngine> build(const EngineMakerHost& host) override {
    LOCKSTEP_ASSIGN_OR_RETURN(engine_, make_(host.make_buffer));
    shown_.store(engine_.get());
    if (is_stopped_.load()) engine_->request_stop();
    if (data_ != nullptr) watch_far_data(data_->train(), data_->eval(), data_->cache(), host);
    MadeEngine made;
    made.engine = engine_.get();
    made.facts = facts_;
    made.identity = said_.identity;
    made.state_hash = said_.state_hash;
    made.code_hash = said_.code_hash;
    if (module_ != nullptr) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          devices_,
          open_devices({host.job, *module_, *engine_, host.clock, host.logger, /*gpu=*/0,
                        rundir::file_in(host.options.run_dir, rundir::kCache), host.on_stuck}));
      made.devices = devices_.get();
    }
    // The one that this process sees, which torch has opened.
    if (host.job.cluster().device() == "cuda") made.gpu = identity_of_gpu(0);
    return made;
  }
  void has_finished() override { has_finished_.store(true); }
  // NCCL blocks if it cannot end its work (device_comm.h, D2), and here the process does not wait.
  void has_trained() override { devices_.reset(); }

 private:
  const Make make_;
  std::atomic<ScriptEngine*>& shown_;
  const std::atomic<bool>& is_stopped_;
  std::atomic<bool>& has_finished_;
  const ScriptData* const data_;  // null: the script's own
  const wire::DataFacts facts_;
  const ScriptSaid& said_;
  DeviceModule* const module_;  // null: the script brings gradients to the host
  std::unique_ptr<ScriptEngine> engine_;
  std::unique_ptr<DeviceComm> devices_;
};

}  // namespace

Result<std::unique_ptr<ScriptRun>> ScriptRun::open(std::optional<WorkerOptions> worker,
                                                   wire::JobSpec job) {
  const wire::TrainSpec& train = job.train();
  if (train.global_batch() == 0 || train.slots() == 0)
    return Status(Code::kUsage,
                  "a script's job names train.global_batch and train.slots as numbers, "
                  "since its data are not known before it runs");
  return std::unique_ptr<ScriptRun>(new ScriptRun(std::move(worker), std::move(job)));
}

Result<std::unique_ptr<ScriptRun>> ScriptRun::open_replay(wire::ReplayPlan plan) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto run, open({}, plan.job()));
  run->replay_ = std::make_unique<ScriptReplay>(std::move(plan));
  run->job_lines_ += "is_replay=1\n";
  return run;
}

ScriptRun::ScriptRun(std::optional<WorkerOptions> worker, wire::JobSpec job)
    : options_(with_stack_memory(std::move(worker))),
      job_(std::move(job)),
      job_lines_(lines_of(job_, options_)),
      training_over_(trained_.get_future()) {}

ScriptRun::~ScriptRun() {
  close(70);
}

Status ScriptRun::declare(uint64_t samples, std::string fingerprint) {
  if (samples == 0 || fingerprint.empty())
    return {Code::kBadData, "the data set has no samples; give batches() one that has"};
  LOCKSTEP_RETURN_IF_ERROR(has_no_data());
  shape_ = {samples, job_.train().global_batch(), job_.train().slots(), turns_};
  order_ = {.seed = job_.seed(),
            .fingerprint = std::move(fingerprint),
            .samples = samples,
            .blocks = block_shuffle(job_.data()),
            .classes = 0,
            .parts = {}};
  return Status::ok();
}

Status ScriptRun::set_turns(uint32_t turns) {
  LOCKSTEP_RETURN_IF_ERROR(has_no_data());
  if (turns == 0 || turns > limits::kTurns)
    return {Code::kUsage, "a batch has 1 to " + std::to_string(limits::kTurns) + " phases"};
  turns_ = turns;
  return Status::ok();
}

bool ScriptRun::is_check(Step applied) const {
  return check_ordinal(applied, check_distance(job_.train().check_every(), turns_)).has_value();
}

Status ScriptRun::has_no_data() const {
  if (shape_.samples == 0) return Status::ok();
  return {Code::kUsage, "the data of a run are declared once"};
}

Result<uint64_t> ScriptRun::open_data(const char* cache, EvalData eval) {
  LOCKSTEP_RETURN_IF_ERROR(has_no_data());
  const std::string& named = job_.data().cache_dir();
  std::string directory = named.empty() && cache != nullptr ? cache : named;
  if (options_) directory = data::cache_directory(job_.data(), options_->run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(data_, ScriptData::open(job_, turns_, std::move(directory), eval));
  shape_ = data_->shape();
  order_ = data_->order();
  return shape_.samples;
}

Result<std::unique_ptr<ls_batch_handle>> ScriptRun::batch(const ls_task& task) {
  if (data_ == nullptr)
    return Status(Code::kUsage,
                  "the job's data are not open; batches() of the script's own data "
                  "set makes them in Python");
  ScriptEngine* const engine = engine_.load();
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto batch, engine != nullptr ? engine->take_batch() : data_->load(task.step, task.slot));
  return std::make_unique<ls_batch_handle>(job_.data(), std::move(batch));
}

Result<std::unique_ptr<ls_batch_handle>> ScriptRun::eval_batch(uint64_t begin, uint64_t end) {
  if (data_ == nullptr || data_->eval() == nullptr)
    return Status(Code::kUsage, "the job's evaluation data are not open");
  LOCKSTEP_ASSIGN_OR_RETURN(auto batch, data_->read_eval(begin, end));
  return std::make_unique<ls_batch_handle>(job_.data(), std::move(batch));
}

Result<std::optional<ls_task>> ScriptRun::task(Step step, uint32_t slot) const {
  if (shape_.samples == 0) return Status(Code::kUsage, "the data are not declared yet");
  if (slot >= shape_.slots) return Status(Code::kUsage, "the run has no such slot");
  const ls_task task = task_of(shape_, job_.seed(), step, slot, plan_step(shape_, step).samples);
  return task.begin == task.end ? std::optional<ls_task>() : std::optional(task);
}

Status ScriptRun::indices(const ls_task& task, std::span<uint64_t> out) const {
  if (task.end < task.begin || task.end > shape_.samples || out.size() != task.end - task.begin)
    return {Code::kUsage, "a slot's positions lie outside its epoch"};
  const EpochOrder order(order_, task.epoch);
  for (uint64_t i = 0; i < out.size(); ++i) out[i] = order.at(task.begin + i);
  return Status::ok();
}

Status ScriptRun::open_device(const std::string& path) {
  if (has_begun_ || module_ != nullptr)
    return {Code::kUsage, "a run opens its device once, before it begins"};
  LOCKSTEP_ASSIGN_OR_RETURN(module_, load_device_module(path, /*local_rank=*/0));
  return Status::ok();
}

Status ScriptRun::lay_out(ScriptFacts facts) {
  if (shape_.samples == 0) return {Code::kUsage, "the data are not declared yet"};
  if (layout_) return {Code::kUsage, "a run has one layout"};
  LOCKSTEP_ASSIGN_OR_RETURN(ScriptLayout layout,
                            ScriptLayout::create(std::move(facts), shape_.slots));
  layout_ = std::make_unique<ScriptLayout>(std::move(layout));
  return Status::ok();
}

Status ScriptRun::evaluate(ScriptEvalFacts facts) {
  if (facts.fingerprint.empty() && data_ != nullptr && data_->eval() != nullptr)
    facts.fingerprint = data_->eval()->fingerprint();
  if (facts.samples == 0 || facts.fingerprint.empty())
    return {Code::kBadData, "the evaluation data have no samples; give evaluate() some"};
  if (has_begun_ || facts.name.empty() != evals_.empty())
    return {Code::kUsage,
            "evaluations are told before the run begins, and all but the first have a name"};
  evals_.push_back(std::move(facts));
  return Status::ok();
}

Result<std::unique_ptr<ScriptEngine>> ScriptRun::make_engine(
    const Engine::BufferFactory& make_buffer) {
  std::function<void(const ls_task&, double)> on_slot;
  if (replay_ != nullptr)
    on_slot = [this](const ls_task& task, double loss) { replay_->took_slot(task, loss); };
  return ScriptEngine::create({job_, shape_, order_, *layout_, desk_, said_.fingerprint, lrs_,
                               evals_, data_.get(), std::move(on_slot), module_.get()},
                              make_buffer);
}

Status ScriptRun::begin(ScriptSaid said, const double* lrs) {
  if (!layout_ || has_begun_) return {Code::kUsage, "a run begins once, after its layout"};
  LOCKSTEP_RETURN_IF_ERROR(check_script_evals(evals_, job_));
  std::sort(said.fingerprint.begin(), said.fingerprint.end());
  for (const ScriptEvalFacts& eval : evals_) {
    if (eval.name.empty()) continue;  // the first one's are facts of the data
    wire::IdentityFact& fact = said.identity.emplace_back();
    fact.set_key("evaluation " + eval.name);
    fact.set_value(std::to_string(eval.samples) + " samples, " + eval.fingerprint);
  }
  std::sort(said.identity.begin(), said.identity.end(),
            [](const auto& a, const auto& b) { return a.key() < b.key(); });
  said_ = std::move(said);
  lrs_.assign(lrs, lrs + turns_);
  explain_missing_threads();
  allow_many_descriptors();
  const data::QuietSignals quiet;
  return options_ ? start_worker() : start_alone();
}

Status ScriptRun::start_worker() {
  wire::DataFacts facts;
  if (data_ != nullptr) facts = data_->facts();
  facts.set_train_samples(shape_.samples);
  if (turns_ > 1) facts.set_turns(turns_);
  facts.set_train_fingerprint(order_.fingerprint);
  if (!evals_.empty()) {
    facts.set_eval_samples(evals_.front().samples);
    facts.set_eval_fingerprint(evals_.front().fingerprint);
  }
  auto maker = std::make_unique<ScriptEngineMaker>(
      [this](const Engine::BufferFactory& make_buffer) { return make_engine(make_buffer); },
      engine_, is_stopped_, has_finished_, data_.get(), std::move(facts), said_, module_.get());
  LOCKSTEP_ASSIGN_OR_RETURN(worker_, Worker::create(*options_, std::move(maker)));
  has_begun_ = true;
  training_ = std::thread([this] {
    name_this_thread("training");
    worker_->train();
    trained_.set_value();
  });
  loop_ = std::thread([this] {
    name_this_thread("session");
    serve();
  });
  return Status::ok();
}

// A run that failed does not wait for a script that computes on and on.
void ScriptRun::serve() {
  const int code = worker_->serve();
  desk_.end({.exit_code = code, .is_done = code == 0 && has_finished_.load(), .text = {}});
  if (code == 0 || code == 75 || desk_.wait_until_told(kLastWait)) return;
  std::fprintf(stderr,
               "lockstep: the run is over here, and the script did not come back from its "
               "loop's body\n");
  std::fflush(nullptr);
  ::_exit(code);
}

Status ScriptRun::start_alone() {
  const auto plain = [this](const BufferLayout& layout, uint32_t regions) {
    return Result<std::unique_ptr<GradientBuffer>>(
        make_plain_buffer(layout, regions, layout_->room()));
  };
  LOCKSTEP_ASSIGN_OR_RETURN(own_engine_, make_engine(plain));
  engine_.store(own_engine_.get());
  if (is_stopped_.load()) own_engine_->request_stop();
  has_begun_ = true;
  training_ = std::thread([this] {
    name_this_thread("training");
    train_alone();
    trained_.set_value();
  });
  return Status::ok();
}

DeskEnd ScriptRun::replay() {
  const auto found = replay_->run(shape_, order_, *own_engine_, has_edges(said_.identity));
  if (!found.is_ok()) return {exit_code(found.status()), false, found.status().message()};
  return {found->is_same ? 0 : 1, false, found->text};
}

void ScriptRun::train_alone() {
  if (replay_ != nullptr) return desk_.end(replay());
  const auto ended = run_alone(job_, shape_, *own_engine_, has_edges(said_.identity));
  if (!ended.is_ok())
    return desk_.end({exit_code(ended.status()), false, ended.status().message()});
  desk_.end({ended->is_done ? 0 : 75, ended->is_done, ended->weights_sha256});
}

Result<ScriptEngine*> ScriptRun::engine() {
  ScriptEngine* const engine = engine_.load();
  if (engine == nullptr) return Status(Code::kUsage, "the run has not begun");
  return engine;
}

// Whichever of the two is first, an engine that is built meanwhile hears of it (ScriptEngineMaker).
void ScriptRun::request_stop() {
  is_stopped_.store(true);
  if (ScriptEngine* const engine = engine_.load(); engine != nullptr) engine->request_stop();
}

void ScriptRun::close(int exit_code) {
  if (!has_begun_) return;
  has_begun_ = false;
  desk_.fail_in_hand(exit_code);
  desk_.end({exit_code, false, {}});
  wait_or_leave(training_over_, kLastWait, exit_code);
  training_.join();
  if (loop_.joinable()) loop_.join();
}

}  // namespace lockstep
