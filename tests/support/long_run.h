// A run directory as a run of many steps leaves it: job, facts, journal with folded records,
// checks, evaluations and checkpoints, history. Its coordinator has died, and its generation is
// open, so a coordinator can take it over or resume it.
//
// Thread-safety: free functions.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/plan/fold_digest.h"
#include "coordinator/audit/run_order.h"
#include "coordinator/journal/eval_file.h"
#include "coordinator/journal/history.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/state/identity.h"
#include "coordinator/term/begin.h"
#include "tests/support/small_checkpoint.h"

namespace lockstep::coordinator {

inline constexpr uint32_t kLongRunSlots = 2;
inline constexpr Step kLongRunCheckpoints = 10'000;  // steps between two; each is evaluated
inline constexpr Step kLongRunChecks = 100;

inline wire::JobSpec long_run_job() {
  wire::JobSpec job;
  job.set_job("long");
  job.set_seed(7);
  job.mutable_model()->set_name("mlp");
  job.mutable_train()->set_global_batch(4);
  job.mutable_train()->set_slots(kLongRunSlots);
  job.mutable_train()->set_max_steps(1'000'000'000);
  job.mutable_comm()->set_numerics("exact");
  job.mutable_comm()->set_bucket_mb(1);
  job.mutable_comm()->set_network("127.0.0.0/8");
  job.mutable_metrics()->set_listen("127.0.0.1:0");
  job.mutable_checkpoint()->set_keep(2);
  job.mutable_cluster()->set_workers(1);
  job.mutable_cluster()->set_start_timeout_s(60);
  job.mutable_cluster()->set_lease_s(5);
  job.mutable_cluster()->set_grace_s(10);
  job.mutable_cluster()->set_min_wait_s(30);
  return job;
}

inline wire::DataFacts long_run_facts() {
  wire::DataFacts facts;
  facts.set_train_fingerprint("aa");
  facts.set_train_samples(4'000);
  return facts;
}

inline StepEntry long_run_step(Step step, Generation generation = 1) {
  StepEntry entry;
  entry.generation = generation;
  entry.step = step;
  entry.epoch = static_cast<Epoch>(step / 1'000);
  entry.samples = 4;
  entry.correct = step % 5;
  entry.loss = step % 997 == 5 ? std::nan("") : 2 + std::sin(static_cast<double>(step) / 500);
  entry.lr = 0.001;
  entry.common_hash = step * 0x9e3779b97f4a7c15ULL;
  entry.wall_us = 300 + step % 7;
  return entry;
}

class LongRunMaker {
 public:
  LongRunMaker(std::string dir, Step steps) : dir_(std::move(dir)), steps_(steps) {
    const wire::JobSpec job = long_run_job();
    EXPECT_TRUE(write_job_spec(dir_, job).is_ok());
    EXPECT_TRUE(write_data_facts(dir_, long_run_facts()).is_ok());
    std::filesystem::create_directories(checkpoints());
    std::filesystem::create_directories(dir_ + "/logs");
    journal_ = open_sqlite_journal(rundir::file_in(dir_, rundir::kJournal)).value();
    history_ = History::open(rundir::file_in(dir_, rundir::kHistory), 0).value();
    const auto identity = identity_of(job, long_run_facts());
    plan_ = std::make_unique<OrderedPlan>(*order_of(identity));
    begin(job, identity);
  }

  void write() {
    for (Step first = 0; first < steps_; first += kLongRunCheckpoints)
      write_part(first, std::min(first + kLongRunCheckpoints, steps_));
    const auto evals =
        EvalFile::open(rundir::file_in(dir_, rundir::kEvals), /*of_tokens=*/false).value();
    EXPECT_TRUE(evals->follow(evals_).is_ok());
  }

 private:
  std::string checkpoints() const { return rundir::file_in(dir_, rundir::kCheckpoints); }

  void commit(const std::vector<JournalEntry>& entries) {
    const Status status = journal_->commit(entries, 1'000);
    ASSERT_TRUE(status.is_ok()) << status.message();
  }

  void begin(const wire::JobSpec& job, const std::vector<IdentityEntry>& identity) {
    wire::Start start;
    wire::MemberInfo* member = start.add_members();
    member->set_member(1);
    member->set_node("n");
    member->mutable_slots()->set_end(kLongRunSlots);
    start.set_writer(1);
    start.mutable_resume()->set_step(0);
    std::vector<JournalEntry> entries(identity.begin(), identity.end());
    entries.push_back(TermEntry{1, 1, job_to_json(job)});
    entries.push_back(MemberEntry{1, 1, "n", 0, 1'000});
    entries.push_back(
        GenerationEntry{1, 1, GenerationState::kStarted, {1}, start.SerializeAsString()});
    entries.push_back(SlotMapEntry{1, {1}, {{0, kLongRunSlots}}});
    entries.push_back(LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}});
    commit(entries);
  }

  // Writes the steps up to a checkpoint. Steps before the newest two checkpoints are folded.
  void write_part(Step first, Step last) {
    std::vector<JournalEntry> entries;
    for (Step step = first; step < last; ++step) {
      entries.push_back(long_run_step(step));
      history_->append(long_run_step(step));
      if ((step + 1) % kLongRunChecks == 0)
        entries.push_back(CheckEntry{1, step + 1, true, {}, 0, false, false});
    }
    if (last + 2 * kLongRunCheckpoints <= steps_) {
      add_folds(first, last, &entries);
    } else {
      add_records(first, last, &entries);
    }
    EvalEntry eval{1, last, static_cast<Epoch>(last / 1'000), 100, 90, 0.3};
    evals_[last] = eval;
    entries.push_back(eval);
    entries.push_back(checkpoint(last));
    commit(entries);
    ASSERT_TRUE(history_->flush().is_ok());
  }

  void add_folds(Step first, Step last, std::vector<JournalEntry>* entries) {
    const Step block = fold_block_steps(kLongRunSlots);
    for (Step begin = first; begin < last; begin += block) {
      const Step end = std::min(begin + block, last);
      FoldDigest digest;
      for (Step step = begin; step < end; ++step) {
        const StepPlan plan = plan_->step(step);
        for (uint32_t slot = 0; slot < kLongRunSlots; ++slot)
          digest.add(step, slot, plan_->digest(plan, slot), plan_->positions(plan, slot).size());
      }
      entries->push_back(FoldEntry{1, begin, end, digest.samples(), digest.value()});
    }
  }

  void add_records(Step first, Step last, std::vector<JournalEntry>* entries) {
    for (Step step = first; step < last; ++step) {
      if ((step - first) % limits::kRecordBatchSteps == 0)
        entries->push_back(RecordsEntry{1, 1, step / limits::kRecordBatchSteps + 1, {}});
      wire::StepRecord& record = std::get<RecordsEntry>(entries->back()).records.emplace_back();
      record.set_step(step);
      const StepPlan plan = plan_->step(step);
      for (uint32_t slot = 0; slot < kLongRunSlots; ++slot) {
        wire::SlotDigest* digest = record.add_slots();
        digest->set_slot(slot);
        digest->set_digest(plan_->digest(plan, slot));
        digest->set_samples(plan_->positions(plan, slot).size());
      }
    }
  }

  // The newest two are there, the others were deleted.
  CheckpointEntry checkpoint(Step step) {
    CheckpointEntry entry;
    entry.name = checkpoint_name({step, 1, 1});
    entry.step = step;
    entry.generation = entry.member = 1;
    entry.state = CheckpointState::kDropped;
    if (step + 2 * kLongRunCheckpoints <= steps_) return entry;
    const JournalMark mark = journal_->mark();
    const auto info = write_small_checkpoint(checkpoints(), step, {mark.lineage_id, mark.sequence});
    entry.manifest_sha256 = info->manifest_sha256;
    entry.weights_sha256 = info->manifest.weights_sha256;
    entry.bytes = info->bytes;
    entry.state = CheckpointState::kComplete;
    return entry;
  }

  const std::string dir_;
  const Step steps_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<History> history_;
  std::unique_ptr<OrderedPlan> plan_;
  std::map<Step, EvalEntry> evals_;
};

inline void make_long_run(const std::string& dir, Step steps) {
  LongRunMaker(dir, steps).write();
}

}  // namespace lockstep::coordinator
