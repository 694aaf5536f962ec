// The findings of an audit as JSON, for tools.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/audit/audit_names.h"
#include "coordinator/audit/audit_text.h"

namespace lockstep::coordinator {
namespace {

using nlohmann::json;

const char* delivery_name(Delivery delivery) {
  switch (delivery) {
    case Delivery::kRight:
      return "right";
    case Delivery::kLeftOut:
      return "left_out";
    case Delivery::kOther:
      return "other_samples";
    case Delivery::kMissing:
      return "no_record";
    case Delivery::kTwice:
      return "twice";
    case Delivery::kUnwanted:
      return "unwanted";
    case Delivery::kBrokenFold:
      return "broken_fold";
  }
  return "unknown";
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

json left_out_json(const AuditReport& report) {
  json entries = json::array();
  for (const LeftOut& left : report.left_out) {
    entries.push_back({{"step", left.step + 1},
                       {"epoch", uint64_t{left.epoch} + 1},
                       {"generation", left.generation},
                       {"slots", {left.slots.begin, left.slots.end}},
                       {"positions", {left.positions.begin, left.positions.end}},
                       {"reason", left.reason}});
  }
  return entries;
}

json expelled_json(const AuditReport& report) {
  json places = json::array();
  for (const Place& place : report.expelled) {
    places.push_back({{"node", place.node}, {"local_rank", place.local_rank}});
  }
  return places;
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
  out["lineage"] = report.lineage_id;
  out["samples_per_epoch"] = report.order.shape.samples;
  out["global_batch"] = report.order.shape.global_batch;
  out["slots"] = report.order.shape.slots;
  out["seed"] = report.order.spec.seed;
  const BlockShuffle& blocks = report.order.spec.blocks;
  if (blocks.is_on()) {
    out["block_samples"] = blocks.block_samples;
    out["window_blocks"] = blocks.window_blocks;
  }
  if (report.order.spec.classes > 0) out["length_classes"] = report.order.spec.classes;
  for (const MixedPart& part : report.order.spec.parts) {
    out["mixture"].push_back(
        {{"fingerprint", part.fingerprint}, {"samples", part.samples}, {"weight", part.weight}});
  }
  if (report.order.shape.turns > 1) out["steps_a_batch"] = report.order.shape.turns;
  if (!report.drawn_by.empty()) out["drawn"] = report.drawn_by;
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
  out["skipped_by_policy"] = left_out_json(report);
  out["skipped"] = report.left_out_samples;
  out["evaluations"] = report.evaluations;
  out["not_evaluated"] = report.not_evaluated;
  out["tainted_from_step"] = report.tainted ? json(*report.tainted) : json(nullptr);
  out["expelled"] = expelled_json(report);
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
