// Acknowledged records and checkpoints are durable, and history.jsonl never says more than the
// journal.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

class RecordsCheck final : public Check {
 public:
  RecordsCheck(World& world, Cluster& cluster, SharedLedger ledger)
      : world_(world), cluster_(cluster), ledger_(std::move(ledger)) {}

  void on_message(const std::string& from, const std::string& to,
                  const wire::Envelope& message) override {
    if (message.has_step_records()) {
      Batch& batch = sent_[{from, message.step_records().batch()}];
      batch.generation = message.generation();
      batch.steps.clear();
      for (const wire::StepRecord& record : message.step_records().records())
        batch.steps.push_back(record.step());
    }
    if (message.has_checkpoint() && !message.checkpoint().error().empty())
      failed_.insert(message.checkpoint().name());
    if (message.has_records_ack()) on_ack(to, message.records_ack().batch());
    if (message.has_checkpoint_ack()) on_checkpoint_ack(message.checkpoint_ack().name());
  }

  // The file has the lines of earlier commits only. A rollback cuts lines after its commit, or
  // leaves them where the run computes the same steps again.
  void on_commit(const Disk::Entries&) override {
    if (lines() > completed_)
      world_.fail("history", "history.jsonl has " + std::to_string(lines()) +
                                 " lines, the journal has " + std::to_string(completed_) +
                                 " complete steps");
    completed_ = std::max(completed_, ledger_->completed());
  }

  // When the run has ended, history.jsonl has no line that a rollback cut away.
  void at_stop() override {
    if (lines() > ledger_->completed())
      world_.fail("history", "history.jsonl has " + std::to_string(lines()) +
                                 " lines, the run was cut to " +
                                 std::to_string(ledger_->completed()) + " steps");
  }

 private:
  struct Batch {
    Generation generation = 0;
    std::vector<Step> steps;
  };

  void on_ack(const std::string& to, uint64_t through) {
    const SimWorker* worker = cluster_.worker_named(to);
    if (worker == nullptr) return;
    const MemberId member = worker->member();
    for (auto it = sent_.lower_bound({to, 0}); it != sent_.end() && it->first.first == to;) {
      if (it->first.second > through) break;
      check(to, member, it->first.second, it->second);
      it = sent_.erase(it);
    }
  }

  void check(const std::string& to, MemberId member, uint64_t number, const Batch& batch) {
    if (ledger_->has_batch(member, number)) return;
    for (const Step step : batch.steps) {
      if (!ledger_->covers(batch.generation, step)) continue;
      if (ledger_->step(batch.generation, step) != nullptr) continue;
      world_.fail("records", "batch " + std::to_string(number) + " of " + to +
                                 " was acknowledged, but its record of step " +
                                 std::to_string(step) + " is not in the journal");
    }
  }

  void on_checkpoint_ack(const std::string& name) {
    const auto found = ledger_->checkpoints().find(name);
    const bool counts = found != ledger_->checkpoints().end();
    if (counts || failed_.count(name) != 0) return;
    world_.fail("checkpoints", name + " was acknowledged, but is not in the journal");
  }

  Step lines() const {
    std::ifstream file(world_.directory + "/history.jsonl");
    std::string line;
    Step count = 0;
    while (std::getline(file, line)) ++count;
    return count;
  }

  World& world_;
  Cluster& cluster_;
  const SharedLedger ledger_;
  std::map<std::pair<std::string, uint64_t>, Batch> sent_;  // by process and number
  std::set<std::string> failed_;                            // checkpoints whose writer said so
  Step completed_ = 0;
};

}  // namespace

std::unique_ptr<Check> make_records_check(World& world, Cluster& cluster, SharedLedger ledger) {
  return std::make_unique<RecordsCheck>(world, cluster, std::move(ledger));
}

}  // namespace lockstep::sim
