// Slots that policy leaves out: every start names exactly those that hold in its generation, no
// member computes or counts them, and a state that bad samples have spoiled does not survive. The
// newest checkpoint before it does.
#include <algorithm>
#include <vector>

#include "coordinator/state/skips.h"
#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::CheckpointState;
using coordinator::SkipEntry;

class SkipCheck final : public Check {
 public:
  SkipCheck(World& world, SharedLedger ledger) : world_(world), ledger_(std::move(ledger)) {}

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      newest_ = std::max(newest_, told_by(entry));
      if (const auto* records = std::get_if<coordinator::RecordsEntry>(&entry)) on_kept(*records);
      const auto* skip = std::get_if<SkipEntry>(&entry);
      if (skip == nullptr) continue;
      // A skip may be found late, when newer generations have begun or were planned without it. The
      // rollback cuts them with the step.
      if (skip->generation < newest_)
        world_.fail("skips", "generation " + std::to_string(newest_) +
                                 " was told nothing of a skip of step " +
                                 std::to_string(skip->step) + " that holds in it by the journal");
      const bool is_of_first = first_turn(world_.shape, skip->step) == skip->step;
      if (skip->slots == SlotRun{0, world_.shape.slots} && is_of_first) check_way_back(skip->step);
      skips_.push_back(*skip);
      skips_.back().generation = newest_;
      if (!world_.options.skips_bad_samples)
        world_.fail("skips", "slots of step " + std::to_string(skip->step) +
                                 " are skipped, and the job does not allow it");
      if (world_.deadly && !world_.absurd && !is_of_deadly(*skip))
        world_.fail("skips", "others are left out than the samples that kill");
      if (skip->slots.begin >= skip->slots.end || skip->slots.end > world_.shape.slots)
        world_.fail("skips", "a run of slots is skipped that is none");
    }
  }

  void on_message(const std::string& from, const std::string& to,
                  const wire::Envelope& message) override {
    if (message.has_start()) on_start(to, message.generation(), message.start());
    if (message.has_planned()) on_start(to, message.generation(), message.planned().next());
    if (message.has_step_records())
      for (const wire::StepRecord& record : message.step_records().records())
        on_record(from, message.generation(), record);
  }

  void at_end() override {
    check_victims();
    check_turns();
  }

  // No resume may go on from the state that the run was stopped for. If samples kill two workers
  // before the journal has a record of the bad loss, the resume judges it by the manifests.
  void at_stop() override {
    check_victims();
    if (!world_.absurd || !is_absurd_known_) return;
    const auto sound = coordinator::newest_sound(*world_.disk.open_journal()->load());
    for (const auto& [name, checkpoint] : ledger_->checkpoints()) {
      const bool is_passed_over = sound && checkpoint.step > *sound;
      if (checkpoint.state == CheckpointState::kComplete && !is_passed_over &&
          checkpoint.step > world_.absurd->step)
        world_.fail("skips", name + " holds what the samples of step " +
                                 std::to_string(world_.absurd->step) + " have spoiled");
    }
  }

 private:
  bool is_of_deadly(const SkipEntry& skip) const {
    const uint32_t slot = world_.deadly->slot;
    return first_turn(world_.shape, skip.step) == first_turn(world_.shape, world_.deadly->step) &&
           skip.step >= world_.deadly->step && skip.slots.begin == slot &&
           skip.slots.end == slot + 1;
  }

  void on_kept(const coordinator::RecordsEntry& records) {
    for (const wire::StepRecord& record : records.records)
      is_absurd_known_ |= world_.absurd && record.step() == world_.absurd->step;
  }

  // The run goes back to before the step, so the newest checkpoint until the step must not be
  // dropped.
  void check_way_back(Step step) {
    const coordinator::CheckpointEntry* newest = nullptr;
    for (const auto& [name, entry] : ledger_->checkpoints())  // by name is by step
      if (entry.step <= step && entry.state != CheckpointState::kRolledBack) newest = &entry;
    if (newest != nullptr && newest->state == CheckpointState::kDropped)
      world_.fail("skips", newest->name + " was dropped, to which the run goes back from step " +
                               std::to_string(step));
  }

  void check_victims() {
    if (world_.victims > 2)
      world_.fail("skips", std::to_string(world_.victims) + " workers died of the same samples");
  }

  // A slot that is left out of a turn is left out of the later turns of its batch, too.
  void check_turns() {
    SkipSet all;
    for (const SkipEntry& skip : skips_) all.add(skip.step, skip.slots.begin, skip.slots.end);
    for (Step step = 1; step < world_.options.steps; ++step)
      for (uint32_t slot = 0; slot < world_.shape.slots; ++slot)
        if (first_turn(world_.shape, step) != step && all.contains(step - 1, slot) &&
            !all.contains(step, slot))
          world_.fail("I11", "slot " + std::to_string(slot) + " is left out of step " +
                                 std::to_string(step - 1) + ", and not of the batch's next");
  }

  SkipSet set_of(Generation generation) const {
    SkipSet set;
    for (const SkipEntry& skip : skips_)
      if (skip.generation < generation) set.add(skip.step, skip.slots.begin, skip.slots.end);
    return set;
  }

  void on_start(const std::string& to, Generation generation, const wire::Start& start) {
    const SkipSet wanted = set_of(generation);
    SkipSet told;
    for (const wire::SkippedSlots& skip : start.skipped())
      told.add(skip.step(), skip.slots().begin(), skip.slots().end());
    for (Step step = 0; step < world_.options.steps; ++step)
      for (uint32_t slot = 0; slot < world_.shape.slots; ++slot)
        if (wanted.contains(step, slot) != told.contains(step, slot))
          return world_.fail("skips", to + " is told otherwise of slot " + std::to_string(slot) +
                                          " of step " + std::to_string(step) + " for generation " +
                                          std::to_string(generation) + " than the journal says");
  }

  void on_record(const std::string& from, Generation generation, const wire::StepRecord& record) {
    const SkipSet skips = set_of(generation);
    const auto plan = plan_step(world_.shape, record.step());
    const std::string which = from + "'s record of step " + std::to_string(record.step());
    if (record.samples() != skips.counted_samples(plan, record.step(), world_.shape.slots))
      world_.fail("I1", which + " counts " + std::to_string(record.samples()) + " samples");
    for (const wire::SlotDigest& digest : record.slots())
      if (skips.contains(record.step(), digest.slot()))
        world_.fail("I1",
                    which + " has slot " + std::to_string(digest.slot()) + ", which is skipped");
  }

  World& world_;
  const SharedLedger ledger_;
  std::vector<SkipEntry> skips_;
  Generation newest_ = 0;
  bool is_absurd_known_ = false;  // the journal has a record of its step
};

}  // namespace

std::unique_ptr<Check> make_skip_check(World& world, SharedLedger ledger) {
  return std::make_unique<SkipCheck>(world, std::move(ledger));
}

}  // namespace lockstep::sim
