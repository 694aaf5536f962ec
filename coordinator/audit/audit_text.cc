#include "coordinator/audit/audit_text.h"

#include <algorithm>

#include "coordinator/audit/audit_names.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kMembersShown = 8;
constexpr size_t kFaultsShown = 50;
constexpr size_t kStepsShown = 20;

const char* delivery_words(Delivery delivery) {
  switch (delivery) {
    case Delivery::kRight:
      return "as planned";
    case Delivery::kLeftOut:
      return "left out by policy";
    case Delivery::kOther:
      return "the delivered samples are not those of the order";
    case Delivery::kMissing:
      return "nobody recorded what was delivered";
    case Delivery::kTwice:
      return "done by two generations of the surviving lineage";
    case Delivery::kUnwanted:
      return "samples that policy leaves out were delivered";
    case Delivery::kBrokenFold:
      return "the hash over its records does not match the order";
  }
  return "unknown";
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

std::string positions_text(const PositionRange& range) {
  return "[" + number(range.begin) + ", " + number(range.end) + ")";
}

// Steps [from, to), 0-based, as people count them.
std::string steps_text(Step from, Step to) {
  if (to == from) return "no step";
  if (to == from + 1) return "step " + number(to);
  return "steps " + number(from + 1) + "-" + number(to);
}

std::string slots_text(const SlotMapEntry& map) {
  std::string text;
  for (size_t rank = 0; rank < map.runs.size(); ++rank) {
    if (rank == kMembersShown) return text + " and " + number(map.runs.size() - rank) + " more";
    const SlotRun& run = map.runs[rank];
    text += (rank == 0 ? "" : ", ") + std::string("member ") + number(map.members[rank]);
    if (run.begin == run.end) {
      text += " no slot";
    } else if (run.end == run.begin + 1) {
      text += " slot " + number(run.begin);
    } else {
      text += " slots " + number(run.begin) + "-" + number(run.end - 1);
    }
  }
  return text;
}

// Whole epochs that follow each other are one line.
std::string epochs_text(const std::vector<AuditedEpoch>& epochs) {
  std::string text;
  for (size_t i = 0; i < epochs.size();) {
    const AuditedEpoch& epoch = epochs[i];
    if (!epoch.is_whole()) {
      text += "epoch " + number(uint64_t{epoch.epoch} + 1) + ": " + number(epoch.steps) + " of " +
              number(epoch.all_steps) + " steps, " + number(epoch.samples) + " of " +
              number(epoch.all_samples) + " samples; the run stopped there\n";
      ++i;
      continue;
    }
    const size_t first = i;
    while (i < epochs.size() && epochs[i].is_whole()) ++i;
    const std::string name = i == first + 1
                                 ? "epoch " + number(uint64_t{epoch.epoch} + 1) + ": "
                                 : "epochs " + number(uint64_t{epoch.epoch} + 1) + "-" +
                                       number(uint64_t{epochs[i - 1].epoch} + 1) + ", each: ";
    text += name + number(epoch.all_steps) + " steps, " + number(epoch.all_samples) + " samples\n";
  }
  return text;
}

std::string skipped_text(const AuditReport& report) {
  if (report.skipped.empty()) return {};
  std::string text =
      "skipped by the loss scaler, or without any weight (consumed, nothing applied): " +
      number(report.skipped_samples) + " samples in steps";
  for (size_t i = 0; i < report.skipped.size(); ++i) {
    if (i == kStepsShown) return text + " and " + number(report.skipped.size() - i) + " more\n";
    text += " " + number(report.skipped[i] + 1);
  }
  return text + "\n";
}

std::string evaluations_text(const AuditReport& report) {
  if (report.evaluations.empty()) return {};
  std::string text = "evaluations " + number(report.evaluations.size()) +
                     ", the last one after step " + number(report.evaluations.back()) + "\n";
  if (report.not_evaluated.empty()) return text;
  text += "not evaluated, although an epoch ended there: after step";
  for (size_t i = 0; i < report.not_evaluated.size(); ++i) {
    if (i == kStepsShown)
      return text + " and " + number(report.not_evaluated.size() - i) + " more\n";
    text += " " + number(report.not_evaluated[i]);
  }
  return text + "\n";
}

std::string left_out_text(const AuditReport& report) {
  std::string text;
  for (const LeftOut& left : report.left_out) {
    text += "skipped by policy: epoch " + number(uint64_t{left.epoch} + 1) + ", step " +
            number(left.step + 1) + ", slots " + number(left.slots.begin) + "-" +
            number(left.slots.end - 1) + ", positions " + positions_text(left.positions) + ": " +
            left.reason + "\n";
  }
  if (report.left_out.empty()) return text;
  return text + "of " + number(report.samples) + " samples " + number(report.applied()) +
         " were used and " + number(report.left_out_samples) + " skipped by policy\n";
}

std::string corruption_text(const AuditReport& report) {
  std::string text;
  for (const Place& place : report.expelled) {
    text += "evicted because it computed wrong: worker " + number(place.local_rank) + " of node " +
            place.node + "\n";
  }
  if (!report.tainted) return text;
  return text + "tainted from step " + number(*report.tainted) +
         " on: workers computed different bits, and the run went on (train.on_corruption)\n";
}

std::string fault_text(const AuditFault& fault) {
  std::string text = "WRONG epoch " + number(uint64_t{fault.epoch} + 1) + ", step " +
                     number(fault.step + 1) + ", slot " + number(fault.slot.slot) + ", positions " +
                     positions_text(fault.slot.positions) + ": " +
                     delivery_words(fault.slot.delivery);
  if (fault.slot.member != 0) {
    text +=
        " (member " + number(fault.slot.member) + ", generation " + number(fault.generation) + ")";
  }
  return text + "\n";
}

std::string classes_text(uint32_t classes) {
  return classes == 0 ? "" : ", in " + number(uint64_t{classes}) + " classes from short to long";
}

std::string blocks_text(const BlockShuffle& blocks) {
  if (!blocks.is_on()) return {};
  return ", in blocks of " + number(blocks.block_samples) + " samples, " +
         number(blocks.window_blocks) + " mixed at a time";
}

// ", mixed 7:2:1 of data sets of 6000, 900, 50 samples"
std::string mixture_text(const std::vector<MixedPart>& parts) {
  if (parts.empty()) return {};
  std::string weights;
  std::string samples;
  for (const MixedPart& part : parts) {
    weights += (weights.empty() ? "" : ":") + number(part.weight);
    samples += (samples.empty() ? "" : ", ") + number(part.samples);
  }
  return ", mixed " + weights + " of data sets of " + samples + " samples";
}

// ", drawn with replacement by 200 weights, 4612caea"
std::string drawn_text(const AuditReport& report) {
  return report.drawn_by.empty() ? "" : ", drawn with replacement by " + report.drawn_by;
}

}  // namespace

std::string audit_text(const AuditReport& report) {
  const RunOrder& order = report.order;
  const uint32_t turns = order.shape.turns;
  std::string text = number(order.shape.samples) + " samples, global batch " +
                     number(order.shape.global_batch) + " in " + number(order.shape.slots) +
                     " slots, seed " + number(order.spec.seed) + blocks_text(order.spec.blocks) +
                     classes_text(order.spec.classes) + mixture_text(order.spec.parts) +
                     drawn_text(report) +
                     (turns == 1 ? "" : ", " + number(turns) + " steps a batch") + "\n";
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const LedgerRow& row = report.rows[i];
    text += "generation " + number(row.generation) + " (" + row.reason + "): " +
            steps_text(row.first.step,
                       row.last ? row.last->step : std::max(report.steps, row.first.step)) +
            "; " + slots_text(report.slot_maps[i]) + "\n";
  }
  for (const UndoneSteps& undone : report.undone) {
    text += "rolled back: " + steps_text(undone.from, undone.to) + " of generation " +
            number(undone.generation) + "\n";
  }
  text += skipped_text(report);
  text += left_out_text(report);
  text += corruption_text(report);
  text += epochs_text(report.epochs);
  text += evaluations_text(report);
  for (size_t i = 0; i < report.faults.size() && i < kFaultsShown; ++i) {
    text += fault_text(report.faults[i]);
  }
  if (report.fault_count > kFaultsShown) {
    text += "WRONG and " + number(report.fault_count - kFaultsShown) + " more; --json has " +
            number(report.faults.size()) + " of them\n";
  }
  const char* const unit = report.drawn_by.empty() ? ", samples " : ", drawn samples ";
  return text + "epochs " + number(whole_epochs(report)) + unit + number(report.samples) +
         ": lost " + number(report.lost) + ", repeated " + number(report.repeated) +
         (report.left_out.empty() ? "" : ", skipped " + number(report.left_out_samples)) + "\n";
}

std::string step_text(const AuditedStep& step) {
  std::string text;
  for (const AuditedSlot& slot : step.slots) {
    text += "step " + number(step.step + 1) + " epoch " + number(uint64_t{step.epoch} + 1) +
            " slot " + number(slot.slot) + " positions " + positions_text(slot.positions) +
            " generation " + number(step.generation) + " rank " + number(slot.rank) + " member " +
            number(slot.member) + " digest " + hex(slot.digest) + " " +
            delivery_words(slot.delivery) +
            (step.skipped ? ", skipped by the loss scaler or without any weight" : "") + "\n";
  }
  return text;
}

}  // namespace lockstep::coordinator
