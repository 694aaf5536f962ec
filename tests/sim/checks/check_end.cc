// At the end of a run: every step of the lineage is proven, the final state equals the undisturbed
// run's, history.jsonl says the same as the journal, and no member is left.
#include <cmath>
#include <fstream>
#include <string>

#include "comm/run/checkpoint/store.h"
#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::CheckpointEntry;
using coordinator::CheckpointState;

class EndCheck final : public Check {
 public:
  EndCheck(World& world, Cluster& cluster, SharedLedger ledger)
      : world_(world), cluster_(cluster), ledger_(std::move(ledger)) {}

  void at_end() override {
    end_ = world_.end();
    if (end_ % world_.shape.turns != 0) world_.fail("I11", "the run ends within a batch");
    for (Step step = 0; step < end_; ++step) audit(step);
    check_history();
    check_checkpoint();
    if (!cluster_.workers().empty() || !cluster_.agents().empty())
      world_.fail("end", "a worker or an agent is left");
  }

 private:
  void audit(Step step) {
    const coordinator::LedgerRow* row = ledger_->row_of(step);
    if (row == nullptr) return;  // check_lineage.cc says so
    const std::string which =
        "step " + std::to_string(step) + " of generation " + std::to_string(row->generation);
    const coordinator::StepEntry* entry = ledger_->step(row->generation, step);
    if (entry == nullptr) return world_.fail("audit", which + " is not complete");
    if (entry->common_hash != world_.reference.record_of(step, row->generation))
      world_.fail("audit", which + " is recorded with another hash");
    if (!std::isfinite(entry->loss)) world_.fail("audit", which + " has no loss");
    const SkipSet& skips = world_.reference.skips();
    const auto plan = plan_step(world_.shape, step);
    if (entry->samples != skips.counted_samples(plan, step, world_.shape.slots))
      world_.fail("I1", which + " counts " + std::to_string(entry->samples) + " samples");
    size_t wanted = 0;
    for (uint32_t slot = 0; slot < world_.shape.slots; ++slot)
      wanted += skips.contains(step, slot) ? 0 : 1;
    if (wanted == 0) return;
    const wire::StepRecord* record = ledger_->digests(row->generation, step);
    if (record == nullptr) return world_.fail("audit", which + " has no digests");
    if (record->slots_size() != static_cast<int>(wanted))
      world_.fail("audit", which + " has " + std::to_string(record->slots_size()) + " digests");
    for (const wire::SlotDigest& digest : record->slots())
      if (skips.contains(step, digest.slot()) ||
          digest.digest() != world_.digest_of(step, digest.slot()))
        world_.fail("audit", which + " read other samples than the plan says");
  }

  void check_history() {
    std::ifstream file(world_.directory + "/history.jsonl");
    std::string line;
    Step step = 0;
    while (std::getline(file, line)) {
      ++step;
      const std::string begin = "{\"step\":" + std::to_string(step) + ",";
      if (line.compare(0, begin.size(), begin) != 0)
        world_.fail("history", "line " + std::to_string(step) + " of history.jsonl is " + line);
    }
    if (step != end_)
      world_.fail("history", "history.jsonl has " + std::to_string(step) + " lines");
  }

  void check_checkpoint() {
    const CheckpointEntry* last = nullptr;
    for (const auto& [name, entry] : ledger_->checkpoints())
      if (entry.state == CheckpointState::kComplete && entry.step == end_ &&
          is_after_edge(name) == world_.has_edge(end_))
        last = &entry;
    if (last == nullptr) return world_.fail("end", "there is no checkpoint of the last step");
    const auto state = world_.disk.load_checkpoint(last->name);
    if (!state.is_ok()) return world_.fail("end", "the final checkpoint is lost");
    if (*state !=
        (world_.has_edge(end_) ? world_.reference.after_edge(end_) : world_.reference.after(end_)))
      world_.fail("I6", "the final state is not that of the undisturbed run");
  }

  World& world_;
  Cluster& cluster_;
  const SharedLedger ledger_;
  Step end_ = 0;
};

}  // namespace

std::unique_ptr<Check> make_end_check(World& world, Cluster& cluster, SharedLedger ledger) {
  return std::make_unique<EndCheck>(world, cluster, std::move(ledger));
}

// The lineage's check is first: it keeps the ledger's view up to date for the others.
void add_all_checks(World& world, Cluster& cluster) {
  const auto ledger = std::make_shared<LedgerView>();
  const auto judged = std::make_shared<Judged>();
  world.checks.push_back(make_lineage_check(world, ledger));
  world.checks.push_back(make_state_check(world, judged));
  world.checks.push_back(make_generation_check(world));
  world.checks.push_back(make_start_check(world, cluster));
  world.checks.push_back(make_eviction_check(world, ledger));
  world.checks.push_back(make_records_check(world, cluster, ledger));
  world.checks.push_back(make_skip_check(world, ledger));
  world.checks.push_back(make_evaluation_check(world, ledger, judged));
  if (world.options.has_edges) world.checks.push_back(make_edge_check(world, judged));
  world.checks.push_back(make_best_check(world, ledger));
  world.checks.push_back(make_script_end_check(world));
  world.checks.push_back(make_identity_check(world, cluster));
  world.checks.push_back(make_order_check(world, cluster));
  world.checks.push_back(make_notice_check(world, cluster));
  world.checks.push_back(make_rest_check(world, cluster));
  world.checks.push_back(make_end_check(world, cluster, ledger));
}

}  // namespace lockstep::sim
