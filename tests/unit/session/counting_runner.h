// One runner with an engine that only counts, alone in its generation; what it says is written
// down.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/collectives/flight_record.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/run/checkpoint/held_state.h"
#include "comm/run/checkpoint/state_hash.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/run/checkpoint/test_state.h"
#include "worker/runner/runner.h"

namespace lockstep::testing {

// Its state is one number: the steps applied.
class CountingEngine final : public Engine {
 public:
  GradientBuffer& gradient_buffer() override { return *buffer_; }
  std::vector<uint64_t> tensor_bounds() const override { return {0, 16}; }
  std::vector<std::string> fingerprint() const override { return {}; }
  Result<std::vector<StateTensor>> state() override { return tensors(); }
  Result<uint64_t> state_hash() override { return hash_of(tensors()); }
  Status install_state(std::span<const StateTensor> state, Step applied_steps) override {
    LOCKSTEP_RETURN_IF_ERROR(install_tensors(state, tensors()));
    applied_ = applied_steps;
    return Status::ok();
  }
  Step applied_steps() const override { return applied_; }
  void go_to(Step applied_steps) { applied_ = applied_steps; }
  Status start_afresh() override {
    count_ = 0;
    applied_ = 0;
    return Status::ok();
  }
  Result<uint64_t> largest_slot(MemoryMeter&, uint32_t) override { return uint64_t{1}; }
  Status set_global_batch(uint64_t) override { return Status::ok(); }

  Status begin_generation(const GenerationView& view, StepGate gate) override {
    collective_ = view.collective;
    is_closed = view.is_closed;
    ends_ = view.ends;
    gate_ = std::move(gate);
    return Status::ok();
  }
  // Uses the Collective a last time, as the lane of a failed step does.
  void end_generation() override {
    if (collective_ == nullptr) return;
    ended_with.push_back(collective_->barrier({1, applied_, Phase::kTrain, 0, 0}).code());
    collective_ = nullptr;
  }
  Result<StepOutcome> step() override {
    if (applied_ == fail_at) return fail_with;
    if (on_step) on_step(applied_);
    if (!gate_.try_enter()) return Status(Code::kAborted, "closed");
    if (on_apply) LOCKSTEP_RETURN_IF_ERROR(on_apply(applied_));
    StepOutcome outcome;
    outcome.record.set_step(applied_);
    outcome.all_want_stop = stop_;
    count_ = static_cast<int64_t>(++applied_);
    outcome.ends_here = applied_ == script_ends_at;
    if (outcome.ends_here) gate_.end_here();
    gate_.leave();
    return outcome;
  }
  Result<wire::EvalReport> evaluate() override {
    wire::EvalReport report;
    report.set_step(applied_);
    if (on_evaluate) on_evaluate(applied_);
    if (loss_after) report.set_loss(loss_after(applied_));
    return report;
  }
  Result<bool> cross_edge(bool is_last) override {
    if (on_edge) LOCKSTEP_RETURN_IF_ERROR(on_edge(is_last));
    count_ += 1'000;
    return ends_at_edge;
  }
  void request_stop() override { stop_ = true; }
  Progress progress() const override { return {}; }

  bool ends_at_edge = false;
  std::function<void(Step)> on_step;
  std::function<Status(Step)> on_apply;  // after the gate
  std::function<void(Step)> on_evaluate;
  std::function<double(Step)> loss_after;  // of an evaluation
  std::function<Status(bool)> on_edge;
  std::function<bool()> is_closed;  // as the view says
  Step fail_at = ~Step{0};
  Status fail_with{Code::kBadData, "cannot read the sample"};
  Step script_ends_at = 0;
  int64_t count_ = 0;
  PossibleEnds ends_;            // of the last generation
  std::vector<Code> ended_with;  // what the Collective said at the end of each generation

 private:
  std::vector<StateTensor> tensors() {
    return {{StateSection::kParameter,
             "count",
             DType::kI64,
             {},
             reinterpret_cast<std::byte*>(&count_),
             sizeof count_}};
  }

  std::unique_ptr<GradientBuffer> buffer_ = make_plain_buffer({16, 16, 32}, 1);
  Collective* collective_ = nullptr;
  StepGate gate_;
  Step applied_ = 0;
  std::atomic<bool> stop_{false};
};

class LonelyContext final : public HostContext {
 public:
  HostAddress address() const override { return {}; }
  Result<std::unique_ptr<GradientBuffer>> make_buffer(const BufferLayout& layout,
                                                      uint32_t regions) override {
    return make_plain_buffer(layout, regions);
  }
  Result<std::unique_ptr<Collective>> connect(Generation generation, uint32_t, MemberId,
                                              const std::vector<PeerAddress>&, int) override {
    if (!fails.is_ok()) return std::exchange(fails, Status::ok());
    auto collective = std::move(make_loopback(generation, {buffer_.get()})[0]);
    newest_ = collective.get();
    return collective;
  }
  int64_t unreachable_rank() const override { return 0; }
  void close(Generation) noexcept override {
    if (newest_ != nullptr) newest_->abort();
  }

  Status fails;  // the next connect()

 private:
  Collective* newest_ = nullptr;
  std::unique_ptr<GradientBuffer> buffer_ = make_plain_buffer({16, 16, 32}, 1);
};

// Writes down what happened, and acknowledges checkpoints at once.
class NotingPort final : public RunnerPort {
 public:
  explicit NotingPort(Mailbox& mailbox) : mailbox_(mailbox) {}
  Status add_record(Generation, wire::StepRecord record) override {
    note("step " + std::to_string(record.step()));
    return Status::ok();
  }
  Status report_eval(Generation, wire::EvalReport report) override {
    note("eval " + std::to_string(report.step()));
    if (on_eval) on_eval();
    return Status::ok();
  }
  void report_checkpoint(Generation, wire::CheckpointReport report) override {
    {
      std::lock_guard lock(mutex_);
      checkpoints.push_back(report);
    }
    if (instead_of_ack) return instead_of_ack();
    if (report.error().empty()) mailbox_.acknowledge(report.name());
  }
  void report_check(Generation, wire::CheckReport report) override {
    note("check after " + std::to_string(report.applied()));
  }
  void suspect(Generation, MemberId member, std::string) override {
    note("suspect " + std::to_string(member));
    mailbox_.end();
  }
  void report_end(Generation, Step step) override { note("end " + std::to_string(step)); }
  void switched(Generation generation, ResumePoint since) override {
    note("switched " + std::to_string(generation) + " at " + std::to_string(since.step));
  }
  void leave(Generation, wire::Leave::Reason reason, Status status,
             std::optional<ResumePoint> applied) override {
    note("leave " + wire::Leave::Reason_Name(reason) + " " +
         std::to_string(applied ? applied->step : 0));
    last = status;
    if (leave_ends) mailbox_.end();
  }
  bool are_recorded() const override { return has_recorded; }
  Result<RecordQueue::Unacknowledged> unacknowledged() const override {
    return RecordQueue::Unacknowledged{};
  }

  std::vector<std::string> events;
  std::vector<wire::CheckpointReport> checkpoints;
  std::atomic<bool> has_recorded{true};
  std::function<void()> on_eval;
  Status last;
  std::function<void()> instead_of_ack;
  bool leave_ends = true;  // leave() ends the mailbox, as the session's end does

 private:
  void note(std::string what) {
    std::lock_guard lock(mutex_);
    events.push_back(std::move(what));
  }
  std::mutex mutex_;
  Mailbox& mailbox_;
};

class RunnerTest : public ::testing::Test {
 protected:
  RunnerTest() {
    (void)wire::Leave::descriptor()->full_name();  // before there are threads, as in RunnerWorld
    (void)wire::JobSpec::descriptor()->full_name();
    job_.mutable_train()->set_global_batch(10);
    job_.mutable_train()->set_slots(1);
    job_.mutable_data()->mutable_eval()->set_path("somewhere");
    job_.mutable_checkpoint()->set_keep(2);
    facts_.set_train_samples(25);  // 3 steps an epoch
  }

  StartOrder order(Generation generation, ResumePoint at, Step total) {
    StartOrder order{generation, 4, "run", {}};
    wire::MemberInfo* member = order.start.add_members();
    member->set_member(4);
    member->mutable_slots()->set_end(1);
    order.start.set_writer(4);
    order.start.set_total_steps(total);
    order.start.mutable_resume()->set_step(at.step);
    order.start.mutable_resume()->set_phase(static_cast<uint32_t>(at.phase));
    if (at.step == 0)
      order.start.mutable_source()->set_fresh(true);
    else
      order.start.mutable_source()->add_members(4);
    return order;
  }

  void run(StartOrder first) {
    Runner runner({job_, facts_, temporary_.path(), {}, 1'000, has_edges_},
                  {engine_, context_, gate_, mailbox_, port_, *files_, probe_, nullptr, *logger_,
                   [this](const Status& status) { failure_ = status; }, /*in_hand=*/nullptr,
                   /*devices=*/nullptr, /*prefetch=*/nullptr, [this] { ++finished_; }, &flight_});
    mailbox_.put(std::move(first));
    runner.run();
  }

  std::vector<std::string> checkpoint_names() {
    return names_in(temporary_.path() + "/checkpoints");
  }

  TemporaryDirectory temporary_;
  wire::JobSpec job_;
  wire::DataFacts facts_;
  CountingEngine engine_;
  LonelyContext context_;
  ApplyGate gate_;
  Mailbox mailbox_;
  NotingPort port_{mailbox_};
  RunnerProbe probe_;
  std::unique_ptr<FileOps> files_ = posix_file_ops();
  std::unique_ptr<Logger> logger_ = null_logger();
  Status failure_;
  SystemClock clock_;
  FlightRecord flight_{clock_};
  bool has_edges_ = false;
  int finished_ = 0;  // times that nothing was left to do
};

}  // namespace lockstep::testing
