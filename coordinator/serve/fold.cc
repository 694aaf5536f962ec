#include "coordinator/serve/fold.h"

#include <algorithm>

#include "comm/base/limits.h"
#include "coordinator/state/skips.h"

namespace lockstep::coordinator {
namespace {

// A turn's work, in samples that are put in order: about 5 ms.
constexpr int64_t kSamples = 200'000;
constexpr int64_t kSamplesPerRecord = 10;  // that could be ordered while one record is read

}  // namespace

Step fold_bound(const State& state) {
  if (state.checks.is_open || state.checkpoints.empty()) return 0;
  const Step newest = state.checkpoints.back().step;
  Step bound = 0;
  for (const CheckpointEntry& checkpoint : state.checkpoints) {
    if (checkpoint.step < newest) bound = std::max(bound, checkpoint.step);
  }
  return std::min(bound, state.completed);
}

bool Folder::is_folded(Generation generation, Step first, Step last) const {
  // A rollback may have shortened the row since.
  return std::any_of(folds_.begin(), folds_.end(), [&](const FoldEntry& fold) {
    return fold.generation == generation && fold.first <= first && last <= fold.last;
  });
}

Status Folder::find_block(const State& state, Step bound) {
  if (bound <= bound_) return Status::ok();
  if (!has_folds_) {
    LOCKSTEP_ASSIGN_OR_RETURN(folds_, journal_.folds());
    has_folds_ = true;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<LedgerRow> rows, journal_.ledger());
  const Step steps = fold_block_steps(plan_.shape().slots);
  for (const LedgerRow& row : rows) {
    if (row.rolled_back) continue;
    const Step end = row.last ? row.last->step : kNoStep;
    for (Step first = std::max(next_, row.first.step); first < end;) {
      const Step last = std::min((first / steps + 1) * steps, end);
      if (last > bound) {
        bound_ = bound;
        return Status::ok();
      }
      next_ = last;
      if (!is_folded(row.generation, first, last)) {
        block_ = Block{row.generation, first, last, first, 0, {}, {}, {}, first};
        block_->skips = skips_in(state.skips, row.generation);
        return Status::ok();
      }
      first = last;
    }
  }
  bound_ = bound;
  return Status::ok();
}

Status Folder::read_records(int64_t* budget) {
  Block& block = *block_;
  block.read = std::min<Step>(block.step + limits::kRecordBatchSteps, block.last);
  LOCKSTEP_ASSIGN_OR_RETURN(block.recorded,
                            recorded_steps(journal_, block.generation, block.step, block.read));
  *budget -= static_cast<int64_t>(block.recorded.records) * kSamplesPerRecord;
  return Status::ok();
}

// Checks as many slots of the next step as the budget allows. Returns what is not as planned.
std::optional<std::string> Folder::check_step(int64_t* budget) {
  Block& block = *block_;
  const StepPlan plan = plan_.step(block.step);
  const auto it = block.recorded.steps.find(block.step);
  const RecordedStep* recorded = it == block.recorded.steps.end() ? nullptr : &it->second;
  const uint32_t slots = plan_.shape().slots;
  for (; *budget > 0 && block.slot < slots; ++block.slot) {
    const uint64_t samples = plan_.positions(plan, block.slot).size();
    if (samples == 0) continue;
    SlotDelivery judged;
    if (block.skips.contains(block.step, block.slot)) {
      judged = judge_left_out(recorded, block.slot);
    } else {
      *budget -= static_cast<int64_t>(samples);
      judged = judge_slot(recorded, block.slot, plan_.digest(plan, block.slot), samples);
    }
    if (judged.delivery == Delivery::kRight) {
      block.digest.add(block.step, block.slot, judged.digest, samples);
    } else if (judged.delivery != Delivery::kLeftOut) {
      return "the records of slot " + std::to_string(block.slot) + " of step " +
             std::to_string(block.step + 1) + " (generation " + std::to_string(block.generation) +
             ") do not match the order of the samples: the coordinator keeps the records of "
             "steps " +
             std::to_string(block.first + 1) + " to " + std::to_string(block.last) +
             "; lockstep audit tells more when the run has ended";
    }
  }
  if (block.slot < slots) return std::nullopt;
  block.slot = 0;
  ++block.step;
  return std::nullopt;
}

Result<Folder::Outcome> Folder::work(const State& state) {
  if (!block_) LOCKSTEP_RETURN_IF_ERROR(find_block(state, fold_bound(state)));
  Outcome outcome;
  for (int64_t budget = kSamples; block_ && budget > 0;) {
    if (block_->step == block_->last) {
      outcome.fold = FoldEntry{block_->generation, block_->first, block_->last,
                               block_->digest.samples(), block_->digest.value()};
      folds_.push_back(*outcome.fold);
      block_.reset();
      return outcome;
    }
    if (block_->step == block_->read) LOCKSTEP_RETURN_IF_ERROR(read_records(&budget));
    outcome.kept = check_step(&budget);
    if (outcome.kept) block_.reset();
  }
  return outcome;
}

}  // namespace lockstep::coordinator
