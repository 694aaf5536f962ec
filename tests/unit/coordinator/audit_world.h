// Journals whose digests come from real loaders.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "comm/run/job/job.pb.h"
#include "coordinator/audit/audit_text.h"
#include "coordinator/journal/journal_memory.h"
#include "coordinator/state/identity.h"
#include "data/dataset/dataset.h"
#include "data/dataset/memory_dataset.h"
#include "data/loader/loader.h"

namespace lockstep::coordinator {

inline constexpr uint64_t kSamples = 50;
inline constexpr uint64_t kSeed = 11;
inline constexpr uint32_t kSlots = 3;

inline std::unique_ptr<data::Dataset> dataset() {
  auto made = data::make_memory_dataset({1, 1, 1}, std::vector<uint8_t>(kSamples),
                                        std::vector<uint32_t>(kSamples));
  return std::move(made).value();
}

inline RunShape run_shape() {
  return {kSamples, 8, kSlots};
}

// A worker that trains: its loader, and the record of each step.
inline std::vector<wire::StepRecord> train(const data::Dataset& data, Step from, Step to,
                                           uint64_t seed = kSeed) {
  data::LoaderOptions options;
  options.shape = run_shape();
  options.order = {seed, data.fingerprint(), data.samples()};
  options.first_step = from;
  options.end_step = to;
  options.slots = {0, kSlots};
  options.transforms = {};
  auto loader = data::Loader::start(data, options);
  EXPECT_TRUE(loader.is_ok()) << loader.status().message();
  std::vector<wire::StepRecord> records;
  for (Step step = from; step < to; ++step) records.emplace_back().set_step(step);
  while (true) {
    const auto batch = (*loader)->next();
    EXPECT_TRUE(batch.is_ok());
    if (*batch == nullptr) return records;
    wire::SlotDigest* digest = records[(*batch)->step - from].add_slots();
    digest->set_slot((*batch)->slot);
    digest->set_digest((*batch)->digest);
    digest->set_samples((*batch)->samples);
  }
}

inline std::string last_line(const AuditReport& report) {
  const std::string text = audit_text(report);
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

// A journal with the identity of a run, and functions that fill and audit it.
class AuditWorld : public ::testing::Test {
 protected:
  // `journal`: empty.
  explicit AuditWorld(std::unique_ptr<Journal> journal = std::make_unique<MemoryJournal>())
      : journal_(std::move(journal)) {
    wire::JobSpec job;
    job.set_seed(kSeed);
    job.mutable_train()->set_global_batch(run_shape().global_batch);
    job.mutable_train()->set_slots(kSlots);
    wire::DataFacts facts;
    facts.set_train_samples(kSamples);
    facts.set_train_fingerprint(data_->fingerprint());
    for (const IdentityEntry& entry : identity_of(job, facts)) commit({entry});
  }

  void commit(std::vector<JournalEntry> entries) {
    const Status status = journal_->commit(entries, 0);
    ASSERT_TRUE(status.is_ok()) << status.message();
  }
  // Generation `g` did [from, to) of the lineage; its row is open without `to`.
  void row(Generation g, Step from, std::optional<Step> to) {
    std::optional<ResumePoint> last;
    if (to) last = ResumePoint{*to, Phase::kTrain};
    commit({LedgerEntry{{g, {from, Phase::kTrain}, last, false, "start"}},
            SlotMapEntry{g, {10 * g, 10 * g + 1}, {{0, 2}, {2, kSlots}}}});
  }
  void report(Generation g, std::vector<wire::StepRecord> records) {
    std::vector<JournalEntry> entries;
    for (const wire::StepRecord& record : records) entries.push_back(step_entry(record, g));
    const auto at_once = static_cast<size_t>(limits::kRecordBatchSteps);
    for (size_t from = 0; from < records.size(); from += at_once) {
      const auto begin = records.begin() + static_cast<std::ptrdiff_t>(from);
      const auto end =
          records.begin() + static_cast<std::ptrdiff_t>(std::min(from + at_once, records.size()));
      entries.push_back(RecordsEntry{g, 10 * g, ++batch_, {begin, end}});
    }
    commit(std::move(entries));
  }
  AuditReport checked() {
    auto report = audit(*journal_, [this](const AuditedStep& step) { steps_.push_back(step); });
    EXPECT_TRUE(report.is_ok()) << report.status().message();
    return std::move(*report);
  }

  std::unique_ptr<data::Dataset> data_ = dataset();
  std::unique_ptr<Journal> journal_;
  uint64_t batch_ = 0;
  std::vector<AuditedStep> steps_;
};

}  // namespace lockstep::coordinator
