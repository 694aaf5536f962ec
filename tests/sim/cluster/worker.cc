#include "tests/sim/cluster/worker.h"

#include <limits>
#include <utility>

#include "comm/base/planted_bug.h"

namespace lockstep::sim {
namespace {

// As in worker/process/worker.cc.
constexpr int64_t kLastWordsMs = 50;
constexpr int64_t kGoodbyeDeadlineMs = 5'000;
constexpr int64_t kCoordinatorWaitMs = 600'000;
constexpr int64_t kMaxBackoffMs = 250;

class TraceLogger final : public Logger {
 public:
  TraceLogger(World& world, std::string who) : world_(world), who_(std::move(who)) {}
  void write(std::string_view level, std::string_view event, std::string_view message,
             LogFields) override {
    world_.trace.add(std::string("log ") + std::string(level) + " " + std::string(event), who_, 0,
                     0, message);
  }

 private:
  World& world_;
  const std::string who_;
};

}  // namespace

std::unique_ptr<Logger> trace_logger(World& world, std::string who) {
  return std::make_unique<TraceLogger>(world, std::move(who));
}

SimWorker::SimWorker(World& world, std::string node, uint32_t local_rank)
    : Process(world,
              node + "/w" + std::to_string(local_rank) + "." + std::to_string(world.next_pid())),
      node_(std::move(node)),
      local_rank_(local_rank),
      logger_(trace_logger(world, name())),
      transport_(world.network.transport(name(), loop())) {
  world_.trace.add("begin", name(), pid());
  Session::Options options;
  options.rpc.address = [this]() -> Result<rpc::Address> {
    if (!world_.endpoint) return Status(Code::kNoInput, "no coordinator.json yet");
    return world_.endpoint->control;
  };
  options.rpc.token = kToken;
  options.rpc.max_backoff_ms = kMaxBackoffMs;
  options.rpc.give_up_after_ms = kCoordinatorWaitMs;
  options.rpc.jitter_seed = pid();
  options.heartbeat_ms = heartbeat_interval_ms(world_.job.cluster().lease_s());
  options.join_deadline_ms = int64_t{world_.job.cluster().start_timeout_s()} * 1'000;
  options.spill_path = world_.directory + "/records-" + std::to_string(pid());
  session_ = std::make_unique<Session>(*transport_, std::move(options), *this, *logger_);
  loop().call_after(20 + static_cast<int64_t>(world_.prng.below(200)), [this] { begin(); });
}

SimWorker::~SimWorker() {
  vanish();
}

void SimWorker::begin() {
  Trainer::Parts parts{world_,
                       *this,
                       gate_,
                       *session_,
                       [this](const Status& why) {
                         loop().call_after(kGoodbyeDeadlineMs, [this, why] { session_->end(why); });
                       },
                       place(),
                       [this] { loop().post([this] { kill(); }); },
                       in_hand_};
  trainer_ = std::make_unique<Trainer>(std::move(parts));
  session_->begin(hello());
}

// The training ends before the session that it reports to, and both before their transport.
void SimWorker::vanish() {
  if (trainer_ && ending().signal != 0) world_.note_killed(name(), trainer_->is_evaluating());
  trainer_.reset();
  session_.reset();
}

wire::Register SimWorker::hello() const {
  wire::Register hello;
  hello.set_run_id(world_.job.job());
  hello.set_node(node_);
  hello.set_local_rank(local_rank_);
  hello.set_pid(pid());
  hello.set_process(pid());
  hello.mutable_data()->set_host_id(node_);
  hello.mutable_data()->set_unix_name(name());
  hello.mutable_fingerprint()->add_lines("isa=avx2");
  world_.tell(place(), &hello);
  hello.set_flat_elements(64);
  hello.add_tensor_bounds(0);
  hello.add_tensor_bounds(64);
  return hello;
}

void SimWorker::terminate() {
  world_.trace.add("SIGTERM", name());
  loop().post([this] { session_->drain("SIGTERM"); });
}

Status SimWorker::on_registered(const wire::Registered& registered) {
  member_ = registered.member();
  return Status::ok();
}

void SimWorker::answer(Generation through, const Closed& closed, const Standing& standing) {
  trainer_->close(through);
  world_.trace.add("answers", name(), through, standing.applied ? standing.applied->step : 0);
  closed(standing);
  world_.moment(Moment::kClosed, name());
}

void SimWorker::on_close(Generation through, Closed closed) {
  world_.moment(Moment::kClosing, name());
  if (LOCKSTEP_BUG(kAnswerOutsideGate)) {
    gate_.close(through, [](const Standing&) {});
    loop().post(
        [this, through, closed = std::move(closed)] { answer(through, closed, gate_.standing()); });
    return;
  }
  gate_.close(through, [this, through, closed = std::move(closed)](const Standing& standing) {
    loop().post([this, through, closed, standing] { answer(through, closed, standing); });
  });
}

void SimWorker::on_start(Generation generation, const wire::Start& start) {
  world_.moment(Moment::kStarted, name());
  trainer_->put({generation, member_, world_.job.job(), start, false});
}

void SimWorker::on_planned(Generation generation, const wire::Start& next) {
  world_.moment(Moment::kPlanned, name());
  trainer_->plan({generation, member_, world_.job.job(), next, true});
}

void SimWorker::on_new_identity(Generation through) {
  gate_.close(through, [](const Standing&) {});
  if (!LOCKSTEP_BUG(kNewIdentityKeepsState)) gate_.forget();
  trainer_->close(through);
  trainer_->forget();
}

void SimWorker::on_stop(const std::string&) {
  if (trainer_) trainer_->request_stop();
}

void SimWorker::on_checkpoint_ack(const wire::CheckpointAck& ack) {
  world_.disk.drop_checkpoints({ack.drop().begin(), ack.drop().end()},
                               world_.job.checkpoint().keep());
  trainer_->acknowledge(ack.name());
}

void SimWorker::on_recorded() {
  if (trainer_) trainer_->recorded();
}

void SimWorker::on_end(const Status& why, int exit_code) {
  world_.trace.add("session-end", name(), static_cast<uint64_t>(exit_code), 0, why.message());
  world_.moment(Moment::kLeaving, name());
  constexpr Generation kAll = std::numeric_limits<Generation>::max();
  gate_.close(kAll, [](const Standing&) {});
  if (trainer_) trainer_->close(kAll);
  if (trainer_) trainer_->end();
  loop().call_after(kLastWordsMs, [this, exit_code] { exit(exit_code); });
}

SessionHost::Heartbeat SimWorker::heartbeat() const {
  if (!trainer_) return {};
  return {trainer_->state().step, trainer_->phase(), trainer_->buckets_sent()};
}

}  // namespace lockstep::sim
