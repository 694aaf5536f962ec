#include "deploy/cli/doctor/doctor_report.h"

#include <algorithm>
#include <cstdio>

#include "deploy/cli/base/text.h"

namespace lockstep {
namespace {

using doctor::Change;
using doctor::Rung;
using doctor::RungKind;

template <typename... Values>
std::string line(const char* format, const Values&... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string row(const Rung& rung) {
  const std::string spread = rate_text(rung.rate.low) + " - " + rate_text(rung.rate.high);
  if (rung.limit <= 0)
    return line("  %-26s %12s  %s\n", rung_title(rung.kind).c_str(),
                rate_text(rung.rate.median).c_str(), spread.c_str());
  return line("  %-26s %12s  %-22s %12s  %s\n", rung_title(rung.kind).c_str(),
              rate_text(rung.rate.median).c_str(), spread.c_str(), rate_text(rung.limit).c_str(),
              rung.bound.c_str());
}

std::string override_text(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes)
    text += (text.empty() ? "" : " ") + change.key + "=" + change.value;
  return text;
}

bool is_for_a_new_run(const std::vector<Change>& changes) {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.is_identity; });
}

std::string finding_text(const doctor::FaultFinding& finding) {
  std::string text =
      "finding: " + std::string(doctor::fault_name(finding.fault)) + "\n  " + finding.reason + "\n";
  if (!finding.changes.empty())
    text += "change: " + override_text(finding.changes) +
            (is_for_a_new_run(finding.changes) ? "   (in a new run)" : "") + "\n";
  for (const std::string& advice : finding.advice) text += "advice: " + advice + "\n";
  return text;
}

nlohmann::json to_json(const Rung& rung) {
  return {{"name", doctor::rung_name(rung.kind)},
          {"samples_per_second", rung.rate.median},
          {"low", rung.rate.low},
          {"high", rung.rate.high},
          {"windows", rung.rate.windows},
          {"limit", rung.limit},
          {"limit_is", rung.bound}};
}

nlohmann::json to_json(const doctor::FaultFinding& finding) {
  nlohmann::json changes = nlohmann::json::array();
  for (const Change& change : finding.changes)
    changes.push_back(
        {{"key", change.key}, {"value", change.value}, {"new_run_only", change.is_identity}});
  return {{"fault", doctor::fault_name(finding.fault)},
          {"reason", finding.reason},
          {"changes", changes},
          {"advice", finding.advice}};
}

}  // namespace

std::string rung_title(RungKind kind) {
  switch (kind) {
    case RungKind::kRawCold:
      return "raw reads, not in memory";
    case RungKind::kRaw:
      return "raw reads";
    case RungKind::kDecode:
      return "decode";
    case RungKind::kSamples:
      return "samples, augmented";
    case RungKind::kLoaderCold:
      return "batches, not in memory";
    case RungKind::kLoader:
      return "batches";
    case RungKind::kTrainer:
      return "trainer, batch at hand";
    case RungKind::kResident:
      return "trainer, batch on the GPU";
  }
  return "";
}

double delivered(const doctor::Measurements& measured) {
  const Rung* const trainer = measured.find(RungKind::kTrainer);
  if (trainer == nullptr || measured.find(RungKind::kLoader) == nullptr) return 0;
  return std::min(measured.loader().rate.median, trainer->rate.median);
}

std::string to_text(const Diagnosis& diagnosis) {
  const doctor::Measurements& measured = diagnosis.measured;
  const doctor::Setting& setting = measured.setting;
  std::string text =
      "one worker: " + plural(setting.slot_samples, "sample") + " a slot, " +
      plural(setting.cores, "core") +
      (setting.is_encoded ? ", data.threads=" + std::to_string(setting.data_threads) : "") +
      ", data.prefetch_batches=" + std::to_string(setting.prefetch_batches) + "\n\n";
  text += line("  %-26s %12s  %-22s %12s  %s\n", "", "samples/s", "over its windows", "at most",
               "which is");
  for (const Rung& rung : measured.rungs) text += row(rung);
  for (const AllocatorRate& other : diagnosis.allocators)
    text += line("  %-26s %12s  %s\n", ("trainer, malloc " + other.name).c_str(),
                 rate_text(other.rate.median).c_str(),
                 (rate_text(other.rate.low) + " - " + rate_text(other.rate.high)).c_str());
  text += "\n";
  if (measured.step_s > 0) {
    text += "a step takes " + fixed(measured.step_s * 1e3, 2) + " ms" +
            (setting.is_on_gpu ? "" : " of a core's time");
    if (measured.double_step_s > 0)
      text += ", a step of twice as many samples " +
              fixed(measured.double_step_s / measured.step_s, 2) + " times as long";
    text += "\n";
  }
  for (const std::string& note : measured.notes) text += "note: " + note + "\n";
  return text + finding_text(diagnosis.finding);
}

nlohmann::json to_json(const Diagnosis& diagnosis) {
  const doctor::Measurements& measured = diagnosis.measured;
  const doctor::Setting& setting = measured.setting;
  nlohmann::json rungs = nlohmann::json::array();
  for (const Rung& rung : measured.rungs) rungs.push_back(to_json(rung));
  nlohmann::json allocators = nlohmann::json::array();
  for (const AllocatorRate& other : diagnosis.allocators)
    allocators.push_back({{"name", other.name}, {"samples_per_second", other.rate.median}});
  return {{"slot_samples", setting.slot_samples},
          {"global_batch", setting.global_batch},
          {"cores", setting.cores},
          {"data_threads", setting.data_threads},
          {"prefetch_batches", setting.prefetch_batches},
          {"rungs", rungs},
          {"allocators", allocators},
          {"cold_share", measured.cold_share},
          {"step_s", measured.step_s},
          {"double_step_s", measured.double_step_s},
          {"delivered_samples_per_second", delivered(measured)},
          {"notes", measured.notes},
          {"finding", to_json(diagnosis.finding)}};
}

std::string compare_text(const Diagnosis& before, const Diagnosis& after) {
  std::string text = "with " + override_text(before.finding.changes) + "\n\n";
  text += line("  %-26s %12s %12s\n", "", "before", "after");
  for (const Rung& rung : after.measured.rungs) {
    const Rung* old = before.measured.find(rung.kind);
    text += line("  %-26s %12s %12s\n", rung_title(rung.kind).c_str(),
                 old == nullptr ? "" : rate_text(old->rate.median).c_str(),
                 rate_text(rung.rate.median).c_str());
  }
  text += line("  %-26s %12s %12s\n\n", "a worker trains",
               rate_text(delivered(before.measured)).c_str(),
               rate_text(delivered(after.measured)).c_str());
  return text + finding_text(after.finding);
}

}  // namespace lockstep
