// Several workers without sessions in one process: real runners, gates, mailboxes and the host
// backend between them; the test is their coordinator.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/collectives/loopback/loopback.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/engine/late_collective.h"
#include "tests/unit/run/checkpoint/test_state.h"
#include "tests/unit/session/toy_engine.h"
#include "worker/runner/runner.h"

namespace lockstep::testing {

inline constexpr std::chrono::seconds kNever{30};

// Something that happened once; others wait for it.
class Event {
 public:
  void set() {
    std::lock_guard lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
};

// Writes down what a runner says, and acknowledges its checkpoints.
class WorldPort final : public RunnerPort {
 public:
  explicit WorldPort(Mailbox& mailbox) : mailbox_(mailbox) {}

  Status add_record(Generation generation, wire::StepRecord record) override {
    if (record.step() == fail_record_of) return Status(Code::kInternal, "no room for records");
    note("g" + std::to_string(generation) + " step " + std::to_string(record.step()));
    return Status::ok();
  }
  Status report_eval(Generation, wire::EvalReport report) override {
    note("eval " + std::to_string(report.step()));
    return Status::ok();
  }
  void report_checkpoint(Generation generation, wire::CheckpointReport report) override {
    note("g" + std::to_string(generation) + " checkpoint " + std::to_string(report.step()));
    mailbox_.acknowledge(report.name());
  }
  void report_check(Generation, wire::CheckReport report) override {
    note("check after " + std::to_string(report.applied()));
  }
  void suspect(Generation generation, MemberId member, std::string) override {
    note("g" + std::to_string(generation) + " suspect " + std::to_string(member));
  }
  void report_end(Generation, Step step) override { note("end at " + std::to_string(step)); }
  void switched(Generation generation, ResumePoint since) override {
    note("switched to g" + std::to_string(generation) + " at " + std::to_string(since.step));
  }
  void leave(Generation generation, wire::Leave::Reason reason, Status status,
             std::optional<ResumePoint> applied) override {
    last = status;
    note("g" + std::to_string(generation) + " leave " + wire::Leave::Reason_Name(reason) + " " +
         std::to_string(applied ? applied->step : 0));
  }
  bool are_recorded() const override { return true; }
  Result<RecordQueue::Unacknowledged> unacknowledged() const override {
    return RecordQueue::Unacknowledged{};
  }

  // Waits until a line of what the runner said begins with `words`; fails the test if none ever
  // does.
  void wait_for(const std::string& words) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kNever, [&] { return count_locked(words) > 0; })) return;
    std::string said;
    for (const std::string& line : said_) said += line + "; ";
    FAIL() << "never said \"" << words << "\", but: " << said << last.message();
  }
  size_t count(const std::string& words) {
    std::lock_guard lock(mutex_);
    return count_locked(words);
  }

  Step fail_record_of = ~Step{0};
  Status last;

 private:
  size_t count_locked(const std::string& words) const {
    size_t found = 0;
    for (const std::string& line : said_) found += line.compare(0, words.size(), words) == 0;
    return found;
  }
  void note(std::string line) {
    std::lock_guard lock(mutex_);
    said_.push_back(std::move(line));
    changed_.notify_all();
  }

  Mailbox& mailbox_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> said_;
};

// Devices that are connected in every generation, and used in none. Or the host sums.
class ToyDevices final : public DeviceComm {
 public:
  std::atomic<bool> sum{true};

  Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next) override {
    std::lock_guard lock(mutex_);
    connected_.push_back(next);
    if (!sum) return std::unique_ptr<DeviceCollective>();
    auto alone = make_loopback(next.generation, {buffer_.get()});
    return std::unique_ptr<DeviceCollective>(
        std::make_unique<LateCollective>(std::move(alone.front())));
  }
  std::vector<DeviceGeneration> connected() {
    std::lock_guard lock(mutex_);
    return connected_;
  }

 private:
  std::mutex mutex_;
  std::vector<DeviceGeneration> connected_;
  const std::unique_ptr<GradientBuffer> buffer_ = make_plain_buffer({16, 16, 16}, 1);
};

class Member {
 public:
  Member(MemberId the_id, const wire::JobSpec& job, const wire::DataFacts& facts,
         const std::string& run_dir)
      : id(the_id), context(make_context()), engine(job.train().slots(), make_buffer(job)) {
    runner_ =
        std::make_unique<Runner>(Runner::Options{job, facts, run_dir, {}, 20'000},
                                 Runner::Parts{engine, *context, gate, mailbox, port, *files_,
                                               probe_, nullptr, *logger_, [](const Status&) {},
                                               /*in_hand=*/nullptr, &devices});
    thread_ = std::thread([this] { runner_->run(); });
  }
  ~Member() { end(); }

  // Does what the session's host does on a prepare of `through` + 1.
  Standing close(Generation through) {
    std::promise<Standing> answer;
    mailbox.close(through);
    gate.close(through, [&](const Standing& standing) { answer.set_value(standing); });
    const Standing standing = answer.get_future().get();
    context->close(through);
    return standing;
  }

  void end() {
    if (!thread_.joinable()) return;
    mailbox.end();
    close(~Generation{0});
    thread_.join();
  }

  const MemberId id;
  const std::unique_ptr<HostContext> context;
  ToyEngine engine;
  ApplyGate gate;
  Mailbox mailbox;
  WorldPort port{mailbox};
  ToyDevices devices;

 private:
  static std::unique_ptr<HostContext> make_context() {
    auto made = HostContext::create({.token = "secret"});
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return std::move(made).value();
  }
  std::unique_ptr<GradientBuffer> make_buffer(const wire::JobSpec& job) const {
    auto made = context->make_buffer(ToyEngine::kLayout, ToyEngine::regions(job.train().slots()));
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return std::move(made).value();
  }

  RunnerProbe probe_;
  std::unique_ptr<FileOps> files_ = posix_file_ops();
  std::unique_ptr<Logger> logger_ = null_logger();
  std::unique_ptr<Runner> runner_;
  std::thread thread_;
};

class RunnerWorld {
 public:
  // `slots` of the run; an evaluation after every 10 steps.
  explicit RunnerWorld(size_t members, uint32_t slots = 4, double bucket_mb = 0,
                       uint64_t check_every = 0, uint32_t patience = 0,
                       const std::string& best = "")
      : slots_(slots) {
    // Protobuf makes its descriptors when they are first asked for, in a library that the thread
    // sanitizer does not see into: here, before there are threads.
    (void)wire::Leave::descriptor()->full_name();
    (void)wire::JobSpec::descriptor()->full_name();
    job_.mutable_train()->set_global_batch(10);
    job_.mutable_train()->set_slots(slots);
    job_.mutable_train()->set_check_every(check_every);
    job_.mutable_train()->set_patience(patience);
    job_.mutable_checkpoint()->set_keep(2);
    job_.mutable_checkpoint()->set_best(best);
    job_.mutable_comm()->set_bucket_mb(bucket_mb);
    job_.mutable_data()->mutable_eval()->set_path("somewhere");
    facts_.set_train_samples(100);
    for (size_t i = 0; i < members; ++i) add();
  }

  Member& operator[](size_t index) { return *members_[index]; }
  Member& add() {
    members_.push_back(
        std::make_unique<Member>(10 + members_.size(), job_, facts_, temporary_.path()));
    return *members_.back();
  }

  // Returns the manifest of the checkpoint that this member has written.
  Manifest manifest(Step step, Generation generation, size_t member) const {
    const auto info = read_checkpoint_info(path_of({step, generation, members_[member]->id}));
    EXPECT_TRUE(info.is_ok()) << info.status().message();
    return info.is_ok() ? info->manifest : Manifest{};
  }
  std::string path_of(const CheckpointName& name) const {
    return temporary_.path() + "/checkpoints/" + checkpoint_name(name);
  }

  // Every start from here on leaves these slots out.
  void skip(Step step, uint32_t begin, uint32_t end) {
    wire::SkippedSlots& entry = skipped_.emplace_back();
    entry.set_step(step);
    entry.mutable_slots()->set_begin(begin);
    entry.mutable_slots()->set_end(end);
  }

  // A start of these members, in this order, with slots as even as possible.
  wire::Start make_start(const std::vector<size_t>& ranks, Step total) {
    wire::Start start;
    for (size_t r = 0; r < ranks.size(); ++r) {
      Member& member = *members_[ranks[r]];
      const HostAddress address = member.context->address();
      wire::MemberInfo& info = *start.add_members();
      info.set_member(member.id);
      info.set_rank(static_cast<uint32_t>(r));
      info.mutable_slots()->set_begin(static_cast<uint32_t>(slots_ * r / ranks.size()));
      info.mutable_slots()->set_end(static_cast<uint32_t>(slots_ * (r + 1) / ranks.size()));
      info.mutable_data()->set_host_id(address.host_id);
      info.mutable_data()->set_unix_name(address.unix_name);
      info.mutable_data()->set_tcp(address.tcp);
    }
    start.set_writer(start.members(0).member());
    start.set_total_steps(total);
    for (const wire::SkippedSlots& entry : skipped_) *start.add_skipped() = entry;
    return start;
  }
  wire::Start fresh(const std::vector<size_t>& ranks, Step total) {
    wire::Start start = make_start(ranks, total);
    start.mutable_source()->set_fresh(true);
    return start;
  }
  // `holders` have the state at `at`.
  wire::Start resume(const std::vector<size_t>& ranks, Step total, ResumePoint at,
                     const std::vector<size_t>& holders) {
    wire::Start start = make_start(ranks, total);
    *start.mutable_resume() = to_wire(at);
    for (const size_t h : holders) start.mutable_source()->add_members(members_[h]->id);
    return start;
  }
  wire::Start plan(const std::vector<size_t>& ranks, Step total,
                   const std::vector<size_t>& holders) {
    wire::Start start = resume(ranks, total, {}, holders);
    start.clear_resume();
    return start;
  }

  void start(Generation generation, const wire::Start& start, const std::vector<size_t>& to) {
    for (const size_t i : to)
      members_[i]->mailbox.put({generation, members_[i]->id, "run", start, false});
  }
  void tell_plan(Generation generation, const wire::Start& next, size_t to) {
    members_[to]->mailbox.plan({generation, members_[to]->id, "run", next, true});
  }

  // Generation 1 of two members, in which member 1 has come to `step` while member 0 stands before
  // it applies step `behind`; both are closed there. Generation 2 goes on from the state of member
  // 1.
  void start_with_one_ahead(Step total, Step behind, Step step) {
    const auto ahead = std::make_shared<Event>();  // the engines keep what they wait for
    const auto release = std::make_shared<Event>();
    members_[0]->engine.before_apply = [release, behind](Step at) {
      if (at == behind) release->wait();
    };
    members_[1]->engine.on_step = [ahead, step](Step at) {
      if (at == step) ahead->set();
      return Status::ok();
    };
    start(1, fresh({0, 1}, total), {0, 1});
    ahead->wait();
    EXPECT_EQ(members_[0]->close(1).applied, (ResumePoint{behind, Phase::kTrain}));
    EXPECT_EQ(members_[1]->close(1).applied, (ResumePoint{step, Phase::kTrain}));
    release->set();
    start(2, resume({0, 1}, total, {step, Phase::kTrain}, {1}), {0, 1});
  }

  // Waits until these members say FINISHED in the generation `last`, at step `total`, and checks
  // that their states equal the undisturbed run's.
  void expect_undisturbed(const std::vector<size_t>& who, const std::string& last, Step total) {
    for (const size_t i : who) {
      members_[i]->port.wait_for(last + " leave FINISHED " + std::to_string(total));
      members_[i]->end();
    }
    const std::vector<float> expected = undisturbed(total);
    for (const size_t i : who)
      EXPECT_TRUE(members_[i]->engine.values() == expected) << "member " << i;
  }

  // Returns the state of the undisturbed run after `steps` steps.
  std::vector<float> undisturbed(Step steps) {
    RunnerWorld world(1, slots_);
    world.skipped_ = skipped_;
    world.start(1, world.fresh({0}, steps), {0});
    world[0].port.wait_for("g1 leave FINISHED");
    world[0].end();
    return world[0].engine.values();
  }

 private:
  const uint32_t slots_;
  TemporaryDirectory temporary_;
  wire::JobSpec job_;
  wire::DataFacts facts_;
  std::vector<wire::SkippedSlots> skipped_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace lockstep::testing
