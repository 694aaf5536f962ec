#include "coordinator/audit/audit_text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace lockstep::coordinator {
namespace {

using nlohmann::json;

constexpr size_t kMembersShown = 8;
constexpr size_t kFaultsShown = 50;
constexpr size_t kStepsShown = 20;

const char* delivery_name(Delivery delivery) {
  switch (delivery) {
    case Delivery::kRight:
      return "right";
    case Delivery::kOther:
      return "other_samples";
    case Delivery::kMissing:
      return "no_record";
    case Delivery::kTwice:
      return "twice";
  }
  return "unknown";
}

const char* delivery_words(Delivery delivery) {
  switch (delivery) {
    case Delivery::kRight:
      return "as planned";
    case Delivery::kOther:
      return "other samples were delivered than the order says";
    case Delivery::kMissing:
      return "nobody recorded what was delivered";
    case Delivery::kTwice:
      return "done by two generations of the surviving lineage";
  }
  return "unknown";
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

std::string positions_text(const data::PositionRange& range) {
  return "[" + number(range.begin) + ", " + number(range.end) + ")";
}

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
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
              number(epoch.all_samples) + " samples; the run has not come further\n";
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
      "skipped by the loss scaler (consumed, nothing applied): " + number(report.skipped_samples) +
      " samples in steps";
  for (size_t i = 0; i < report.skipped.size(); ++i) {
    if (i == kStepsShown) return text + " and " + number(report.skipped.size() - i) + " more\n";
    text += " " + number(report.skipped[i] + 1);
  }
  return text + "\n";
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

uint64_t whole_epochs(const AuditReport& report) {
  uint64_t whole = 0;
  for (const AuditedEpoch& epoch : report.epochs) whole += epoch.is_whole() ? 1 : 0;
  return whole;
}

json slot_json(const AuditedSlot& slot) {
  return {{"slot", slot.slot},
          {"member", slot.member},
          {"rank", slot.rank},
          {"positions", {slot.positions.begin, slot.positions.end}},
          {"digest", hex(slot.digest)},
          {"delivered", slot.delivered},
          {"result", delivery_name(slot.delivery)}};
}

json generations_json(const AuditReport& report) {
  json rows = json::array();
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const LedgerRow& row = report.rows[i];
    json members = json::array();
    const SlotMapEntry& map = report.slot_maps[i];
    for (size_t rank = 0; rank < map.runs.size(); ++rank) {
      members.push_back({{"member", map.members[rank]},
                         {"rank", rank},
                         {"slots", {map.runs[rank].begin, map.runs[rank].end}}});
    }
    rows.push_back({{"generation", row.generation},
                    {"first_step", row.first.step + 1},
                    {"last_step", row.last ? row.last->step : report.steps},
                    {"is_open", !row.last.has_value()},
                    {"reason", row.reason},
                    {"members", std::move(members)}});
  }
  return rows;
}

}  // namespace

std::string audit_text(const AuditReport& report) {
  const RunOrder& order = report.order;
  std::string text = number(order.shape.samples) + " samples, global batch " +
                     number(order.shape.global_batch) + " in " + number(order.shape.slots) +
                     " slots, seed " + number(order.seed) + "\n";
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
  text += epochs_text(report.epochs);
  for (size_t i = 0; i < report.faults.size() && i < kFaultsShown; ++i) {
    text += fault_text(report.faults[i]);
  }
  if (report.fault_count > kFaultsShown) {
    text += "WRONG and " + number(report.fault_count - kFaultsShown) + " more; --json has " +
            number(report.faults.size()) + " of them\n";
  }
  return text + "epochs " + number(whole_epochs(report)) + ", samples " + number(report.samples) +
         ": lost " + number(report.lost) + ", repeated " + number(report.repeated) + "\n";
}

std::string step_text(const AuditedStep& step) {
  std::string text;
  for (const AuditedSlot& slot : step.slots) {
    text += "step " + number(step.step + 1) + " epoch " + number(uint64_t{step.epoch} + 1) +
            " slot " + number(slot.slot) + " positions " + positions_text(slot.positions) +
            " generation " + number(step.generation) + " rank " + number(slot.rank) + " member " +
            number(slot.member) + " digest " + hex(slot.digest) + " " +
            delivery_words(slot.delivery) + (step.skipped ? ", skipped by the loss scaler" : "") +
            "\n";
  }
  return text;
}

std::string step_json(const AuditedStep& step) {
  json slots = json::array();
  for (const AuditedSlot& slot : step.slots) slots.push_back(slot_json(slot));
  return json{{"step", step.step + 1},
              {"epoch", uint64_t{step.epoch} + 1},
              {"generation", step.generation},
              {"skipped", step.skipped},
              {"loss", step.loss},
              {"slots", std::move(slots)}}
      .dump();
}

std::string audit_json(const AuditReport& report, const std::vector<std::string>& steps) {
  json out;
  out["samples_per_epoch"] = report.order.shape.samples;
  out["global_batch"] = report.order.shape.global_batch;
  out["slots"] = report.order.shape.slots;
  out["seed"] = report.order.seed;
  out["generations"] = generations_json(report);
  out["rolled_back"] = json::array();
  for (const UndoneSteps& undone : report.undone) {
    out["rolled_back"].push_back({{"generation", undone.generation},
                                  {"first_step", undone.from + 1},
                                  {"last_step", undone.to}});
  }
  out["epochs"] = json::array();
  for (const AuditedEpoch& epoch : report.epochs) {
    out["epochs"].push_back({{"epoch", uint64_t{epoch.epoch} + 1},
                             {"steps", epoch.steps},
                             {"samples", epoch.samples},
                             {"whole", epoch.is_whole()}});
  }
  out["skipped_steps"] = json::array();
  for (const Step step : report.skipped) out["skipped_steps"].push_back(step + 1);
  out["faults"] = json::array();
  for (const AuditFault& fault : report.faults) {
    json entry = slot_json(fault.slot);
    entry["step"] = fault.step + 1;
    entry["epoch"] = uint64_t{fault.epoch} + 1;
    entry["generation"] = fault.generation;
    out["faults"].push_back(std::move(entry));
  }
  out["fault_count"] = report.fault_count;
  out["whole_epochs"] = whole_epochs(report);
  out["steps"] = report.steps;
  out["samples"] = report.samples;
  out["lost"] = report.lost;
  out["repeated"] = report.repeated;
  if (!steps.empty()) {
    out["rows"] = json::array();
    for (const std::string& step : steps) out["rows"].push_back(json::parse(step));
  }
  return out.dump(2) + "\n";
}

}  // namespace lockstep::coordinator
