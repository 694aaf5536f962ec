// I1, I2, I5: the surviving rows of the ledger follow each other without a gap or an overlap, and a
// step of the lineage was applied in the generation that the ledger says.
#include <set>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::LedgerRow;

class LineageCheck final : public Check {
 public:
  LineageCheck(World& world, SharedLedger ledger) : world_(world), ledger_(std::move(ledger)) {}

  void on_applied(const Applied& applied) override {
    applied_.emplace(applied.generation, applied.step);
    if (!by_process_.emplace(applied.process, applied.generation, applied.step).second)
      world_.fail("I2", applied.process + " applied step " + std::to_string(applied.step) +
                            " twice in generation " + std::to_string(applied.generation));
  }

  void on_commit(const Disk::Entries& entries) override {
    ledger_->add(entries);
    const LedgerRow* before = nullptr;
    for (const auto& [generation, row] : ledger_->rows()) {
      if (row.rolled_back) continue;
      check_row(before, row);
      before = &row;
    }
  }

  void at_end() override {
    for (Step step = 0; step < world_.end(); ++step) {
      const LedgerRow* row = ledger_->row_of(step);
      if (row == nullptr)
        world_.fail("I5", "no row of the ledger has step " + std::to_string(step));
      else if (applied_.count({row->generation, step}) == 0)
        world_.fail("I2", "the ledger has step " + std::to_string(step) + " in generation " +
                              std::to_string(row->generation) + ", where nobody applied it");
    }
  }

 private:
  void check_row(const LedgerRow* before, const LedgerRow& row) {
    const ResumePoint begin = before == nullptr ? ResumePoint{} : before->last.value_or(row.first);
    const bool is_open_before = before != nullptr && !before->last;
    if (is_open_before)
      world_.fail("I7", "the ledger's row of generation " + std::to_string(before->generation) +
                            " is open and not the newest");
    if (row.first.step != begin.step)
      world_.fail("I1", "the ledger's row of generation " + std::to_string(row.generation) +
                            " begins at step " + std::to_string(row.first.step) +
                            ", the one before ends at " + std::to_string(begin.step));
    if (row.last && row.last->step < row.first.step)
      world_.fail("I3", "the ledger's row of generation " + std::to_string(row.generation) +
                            " ends before it begins");
    // The coordinator closes a row at a step that some member has reported as applied.
    const Step end = row.last ? row.last->step : row.first.step;
    for (Step step = row.first.step; step < end; ++step)
      if (applied_.count({row.generation, step}) == 0)
        world_.fail("I2", "the ledger gives step " + std::to_string(step) + " to generation " +
                              std::to_string(row.generation) + ", where nobody has applied it");
  }

  World& world_;
  const SharedLedger ledger_;
  std::set<std::pair<Generation, Step>> applied_;
  std::set<std::tuple<std::string, Generation, Step>> by_process_;
};

}  // namespace

std::unique_ptr<Check> make_lineage_check(World& world, SharedLedger ledger) {
  return std::make_unique<LineageCheck>(world, std::move(ledger));
}

}  // namespace lockstep::sim
