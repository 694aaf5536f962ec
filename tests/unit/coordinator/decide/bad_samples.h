// A world over a journal and a shelf that go on into the next term, with a policy for bad samples.
#pragma once

#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "coordinator/decide/begin_state.h"
#include "coordinator/state/skips.h"
#include "coordinator/term/term.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Steps have 4 samples in 4 slots.
class BadSamples : public ::testing::Test, protected CheckpointShelf {
 protected:
  void policy(const std::string& name, double spike = 0) {
    w.options.job.mutable_train()->set_on_bad_samples(name);
    w.options.job.mutable_train()->set_loss_spike(spike);
  }

  Result<std::vector<ListedCheckpoint>> list() override { return shelf_; }
  Status verify(const ListedCheckpoint& checkpoint) override {
    if (!damaged_.contains(checkpoint.info.name)) return Status::ok();
    return Status(Code::kBadData, checkpoint.info.name + " is damaged");
  }

  // The first worker, which is the writer, reports it.
  void write_checkpoint(Step step) {
    EXPECT_EQ(w.checkpoint(1, step), Reason::kCheckpointAccepted);
    ListedCheckpoint listed;
    listed.name = {step, w.state.source_generation, w.state.by_connection.at(1)};
    listed.path = "shelf/" + checkpoint_name(listed.name);
    listed.info.name = checkpoint_name(listed.name);
    listed.info.manifest_sha256 = "m";
    listed.info.manifest.resume.step = step;
    listed.info.manifest.generation = listed.name.generation;
    listed.info.manifest.member = listed.name.member;
    shelf_.push_back(std::move(listed));
  }

  // Both workers report the steps [from, to); one of them with another loss.
  Reason both_report(Step from, Step to, Step bad = ~Step{0}, double loss = kNan) {
    Reason reason = Reason::kNothingDue;
    for (ConnectionId c = 1; c <= 2 && !is_end(reason); ++c) {
      const MemberId id = w.state.by_connection.at(c);
      wire::Envelope e = w.records(c, w.state.members.at(id).acked_batch + 1, from, to);
      for (wire::StepRecord& record : *e.mutable_step_records()->mutable_records()) {
        record.set_samples(
            samples_in(w.state.skips, w.state.generation, record.step(), w.options.shape));
        record.set_loss(record.samples() == 0 ? 0 : 2);
        if (record.step() == bad) record.set_loss(loss);
      }
      reason = w.say(c, e);
    }
    return reason;
  }

  // Does what the process does after EndTerm, or what another process does (kTakeOver, kResume).
  Beginning begin(BeginMode mode) {
    auto begun =
        begin_term(w.journal, *w.journal.load(), *this, w.options, {mode, 7, "{}", 1}, *logger_);
    EXPECT_TRUE(begun.is_ok()) << begun.status().message();
    if (!begun.is_ok()) return {};
    w.state = begin_state(begun->beginning, w.now_ms, w.state.experience);
    return begun->beginning;
  }
  Beginning next_term() {
    Beginning beginning = begin(BeginMode::kNextTerm);
    w.train();
    return beginning;
  }
  std::vector<SkipEntry> kept() { return w.journal.load()->skips; }

  World w{small_options(2, 200)};
  std::set<std::string> damaged_;  // names of checkpoints

 private:
  std::vector<ListedCheckpoint> shelf_;
  std::unique_ptr<Logger> logger_ = null_logger();
};

}  // namespace lockstep::coordinator
