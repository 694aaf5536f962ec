#include "data/doctor/decide.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep::doctor {
namespace {

std::string rounded(double number) {
  char text[32];
  std::snprintf(text, sizeof text, number < 10 ? "%.2g" : "%.0f", number);
  return text;
}

std::string a_second(double rate) {
  return rounded(rate) + " samples/s";
}

std::string ratio(double of, double to) {
  char text[32];
  std::snprintf(text, sizeof text, of < to / 10 ? "%.1g" : "%.2f", of / to);
  return text;
}

// What people call a rung.
std::string what_it_does(RungKind kind) {
  switch (kind) {
    case RungKind::kRawCold:
      return "reading samples that are not in memory";
    case RungKind::kRaw:
      return "reading samples";
    case RungKind::kDecode:
      return "decoding images";
    case RungKind::kSamples:
      return "making samples (reading, decoding, augmenting)";
    case RungKind::kLoaderCold:
      return "loading batches that are not in memory";
    case RungKind::kLoader:
      return "loading batches";
    case RungKind::kTrainer:
      break;
  }
  return "training";
}

const Rung& narrow_place(const Measurements& measured, double trainer) {
  const Rung& loader = measured.loader();
  double lowest = loader.rate.median;
  for (const Rung& rung : measured.rungs)
    if (rung.kind != RungKind::kTrainer) lowest = std::min(lowest, rung.rate.median);
  for (const Rung& rung : measured.rungs) {
    if (rung.kind == RungKind::kTrainer) continue;
    if (rung.rate.median < trainer && rung.rate.median <= kSamePlace * lowest) return rung;
  }
  return loader;  // between 1 and 1.1 times the trainer's rate
}

void advise_storage(const Measurements& measured, Finding& finding) {
  finding.advice = {
      "copy the data to a disk of this machine, or to a faster one (data.train.path)",
      "fewer and larger files are read faster than many small ones: write the images as shards"};
  const Rung* warm = measured.find(RungKind::kLoader);
  const Rung* trainer = measured.find(RungKind::kTrainer);
  if (warm->rate.median >= kEnough * trainer->rate.median)
    finding.advice.push_back("once the data are in this machine's memory it loads " +
                             a_second(warm->rate.median) +
                             ", which is enough: if they fit there, the first epoch is slow only");
}

void advise_threads(const Setting& setting, Finding& finding) {
  finding.changes = {{"data.threads", std::to_string(setting.cores), false}};
  finding.advice = {"more workers on other machines share the work (cluster.workers)"};
}

void advise_decode(Finding& finding) {
  finding.advice = {
      "store the images no larger than the model sees them, once and for all, with a margin for "
      "random crops",
      "let fewer or cheaper steps stand in data.transforms (rotate and the colours cost most)",
      "take more machines, or ones with more cores for each worker"};
}

void advise_batching(const Setting& setting, Finding& finding) {
  const uint32_t ahead = std::min(2 * setting.prefetch_batches, limits::kPrefetchBatches);
  if (ahead > setting.prefetch_batches)
    finding.changes = {{"data.prefetch_batches", std::to_string(ahead), false}};
  finding.advice = {
      "this machine's memory is the limit: more workers on other machines, or smaller "
      "samples"};
}

// What the loader's threads make, and do not only wait for.
bool is_made_by_threads(const Setting& setting, RungKind kind) {
  return setting.is_encoded && (kind == RungKind::kDecode || kind == RungKind::kSamples ||
                                kind == RungKind::kLoader || kind == RungKind::kLoaderCold);
}

Fault fault_at(const Measurements& measured, const Rung& rung) {
  if (rung.kind == RungKind::kRawCold || rung.kind == RungKind::kRaw) return Fault::kStorage;
  // Cold batches come much later than warm ones: reads wait for each other.
  const double warm = measured.find(RungKind::kLoader)->rate.median;
  if (rung.kind == RungKind::kLoaderCold && warm > kSamePlace * rung.rate.median)
    return Fault::kStorage;
  const Setting& setting = measured.setting;
  if (!is_made_by_threads(setting, rung.kind)) return Fault::kBatching;
  return setting.data_threads < setting.cores ? Fault::kThreads : Fault::kDecode;
}

Finding data_fault(const Measurements& measured, double trainer) {
  const Setting& setting = measured.setting;
  const Rung& loader = measured.loader();
  const Rung& narrow = narrow_place(measured, trainer);
  Finding finding;
  finding.fault = fault_at(measured, narrow);
  finding.reason = "the loader gives " + a_second(loader.rate.median) + ", " +
                   ratio(loader.rate.median, trainer) + " of what the trainer takes (" +
                   a_second(trainer) + "), and the narrow place is " + what_it_does(narrow.kind) +
                   ": " + a_second(narrow.rate.median);
  switch (finding.fault) {
    case Fault::kStorage:
      advise_storage(measured, finding);
      break;
    case Fault::kThreads:
      finding.reason += " with data.threads=" + std::to_string(setting.data_threads) + ", and " +
                        std::to_string(setting.cores - setting.data_threads) +
                        " of the worker's cores idle";
      advise_threads(setting, finding);
      break;
    case Fault::kDecode:
      finding.reason += " on all " + std::to_string(setting.cores) + " cores of the worker";
      advise_decode(finding);
      break;
    case Fault::kBatching:
      advise_batching(setting, finding);
      break;
    case Fault::kNone:
    case Fault::kTinyBatch:
      LOCKSTEP_CHECK(false, "no data fault");
  }
  return finding;
}

// So many samples a slot that a step is no longer mostly fixed cost: with t(B) = a + bB the fixed
// cost a is 2 t(B) - t(2B), and B' = 2a/b makes it a third. No more than the data have.
uint64_t slot_for(const Measurements& measured) {
  const Setting& setting = measured.setting;
  const double fixed_s = 2 * measured.step_s - measured.double_step_s;
  const auto now = static_cast<double>(setting.slot_samples);
  const double sample_s = (measured.double_step_s - measured.step_s) / now;
  constexpr uint64_t kMostTimes = 64;  // beyond, the measurement is all noise
  uint64_t times = 1;
  while (times < kMostTimes &&
         2 * times * setting.slot_samples * setting.slots <= setting.samples &&
         static_cast<double>(times) * now * std::max(sample_s, 0.0) < 2 * fixed_s)
    times *= 2;
  return times * setting.slot_samples;
}

Finding tiny_batch(const Measurements& measured) {
  const Setting& setting = measured.setting;
  Finding finding;
  finding.fault = Fault::kTinyBatch;
  finding.reason = "the loader is fast enough, but a step of twice as many samples takes only " +
                   ratio(measured.double_step_s, measured.step_s) + " times as long as one of " +
                   std::to_string(setting.slot_samples) + " a slot: most of a step is fixed cost";
  const uint64_t batch = slot_for(measured) * setting.slots;
  if (batch > setting.global_batch)
    finding.changes = {{"train.global_batch", std::to_string(batch), true}};
  finding.advice = {"the learning rate that suits a larger batch is another one",
                    "train.global_batch=auto takes the largest that fits into memory"};
  if (setting.is_on_gpu && !setting.uses_graphs)
    finding.advice.push_back("train.graph=on launches forward and backward as one CUDA graph");
  return finding;
}

Finding no_fault(const Measurements& measured, double trainer) {
  Finding finding;
  const Rung& loader = measured.loader();
  finding.reason = "the loader gives " + ratio(loader.rate.median, trainer) +
                   " times what the trainer takes (" + a_second(trainer) + ")";
  if (measured.double_step_s > 0)
    finding.reason += ", and a step of twice as many samples takes " +
                      ratio(measured.double_step_s, measured.step_s) +
                      " times as long: it computes all the time";
  finding.advice = {"more workers share the computation (cluster.workers)"};
  if (measured.setting.is_on_gpu && measured.setting.precision == "fp32")
    finding.advice.push_back("train.precision=bf16 computes faster on GPUs, in a new run");
  if (measured.setting.is_on_gpu)
    finding.advice.push_back(
        "a larger micro-batch (fewer train.slots, or a larger "
        "train.global_batch) can use a GPU better, in a new run");
  return finding;
}

}  // namespace

std::string_view fault_name(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kStorage:
      return "storage";
    case Fault::kThreads:
      return "threads";
    case Fault::kDecode:
      return "decode";
    case Fault::kBatching:
      return "batching";
    case Fault::kTinyBatch:
      return "tiny_batch";
  }
  return "";
}

Finding decide(const Measurements& measured) {
  const Rung* trainer = measured.find(RungKind::kTrainer);
  LOCKSTEP_CHECK(trainer != nullptr && measured.find(RungKind::kLoader) != nullptr,
                 "a ladder without its ends");
  const double rate = trainer->rate.median;
  if (measured.loader().rate.median < kEnough * rate) return data_fault(measured, rate);
  const bool is_tiny =
      measured.double_step_s > 0 && measured.double_step_s < kStepGrowth * measured.step_s;
  return is_tiny ? tiny_batch(measured) : no_fault(measured, rate);
}

}  // namespace lockstep::doctor
