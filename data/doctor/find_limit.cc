#include "data/doctor/find_limit.h"

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

// Describes a rung for people.
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
    case RungKind::kResident:
      break;
  }
  return "training";
}

bool is_of_data(const Rung& rung) {
  return rung.kind != RungKind::kTrainer && rung.kind != RungKind::kResident;
}

const Rung& narrow_place(const Measurements& measured, double trainer) {
  const Rung& loader = measured.loader();
  double lowest = loader.rate.median;
  for (const Rung& rung : measured.rungs)
    if (is_of_data(rung)) lowest = std::min(lowest, rung.rate.median);
  for (const Rung& rung : measured.rungs) {
    if (is_of_data(rung) && rung.rate.median < trainer && rung.rate.median <= kSamePlace * lowest)
      return rung;
  }
  return loader;  // between 1 and 1.1 times the trainer's rate
}

// If single reads are fast enough and batches are not, advises more reads at a time. If reads of
// neighbouring samples are much faster, advises blocks.
void change_reading(const Measurements& measured, const Rung& narrow, FaultFinding& finding) {
  constexpr uint64_t kUsualAheadMb = 64;
  const Setting& setting = measured.setting;
  if (narrow.kind == RungKind::kLoaderCold) {
    const uint64_t ahead =
        setting.read_ahead_mb == 0
            ? kUsualAheadMb
            : std::min<uint64_t>(uint64_t{4} * setting.read_ahead_mb, limits::kReadAheadMib);
    if (ahead > setting.read_ahead_mb)
      finding.changes = {{"data.read_ahead_mb", std::to_string(ahead), false}};
  } else if (narrow.kind == RungKind::kRawCold && setting.can_shuffle_blocks &&
             narrow.limit > kSamePlace * narrow.rate.median) {
    finding.changes = {{"data.shuffle", "block", true}};
  }
}

void advise_storage(const Measurements& measured, const Rung& narrow, FaultFinding& finding) {
  change_reading(measured, narrow, finding);
  finding.advice = {
      "copy the data to a disk of this machine, or to a faster one (data.train.path)",
      "fewer and larger files are read faster than many small ones: write the images as shards",
      "data.cache.tier=all keeps a copy of the samples on this machine's disk (data.cache_dir) for "
      "later epochs"};
  const Rung* warm = measured.find(RungKind::kLoader);
  const Rung* trainer = measured.find(RungKind::kTrainer);
  if (warm->rate.median >= kEnough * trainer->rate.median)
    finding.advice.push_back(
        "once the data are in this machine's memory, the loader gives " +
        a_second(warm->rate.median) +
        ", which is enough: if the data fit there, only the first epoch is slow");
}

void advise_threads(const Setting& setting, FaultFinding& finding) {
  finding.changes = {{"data.threads", std::to_string(setting.cores), false}};
  finding.advice = {"more workers on other machines share the work (cluster.workers)"};
}

void advise_decode(FaultFinding& finding) {
  finding.advice = {
      "store the images once in the size that the model sees, plus a margin for random crops",
      "use fewer or cheaper steps in data.transforms (rotate and the colours cost most)",
      "use more machines, or machines with more cores for each worker"};
}

void advise_batching(const Setting& setting, FaultFinding& finding) {
  const uint32_t ahead = std::min(2 * setting.prefetch_batches, limits::kPrefetchBatches);
  if (ahead > setting.prefetch_batches)
    finding.changes = {{"data.prefetch_batches", std::to_string(ahead), false}};
  finding.advice = {
      "this machine's memory is the limit: more workers on other machines, or smaller "
      "samples"};
}

// Whether the loader's threads do the work of the rung, and do not only wait for it.
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

FaultFinding data_fault(const Measurements& measured, double trainer) {
  const Setting& setting = measured.setting;
  const Rung& loader = measured.loader();
  const Rung& narrow = narrow_place(measured, trainer);
  FaultFinding finding;
  finding.fault = fault_at(measured, narrow);
  finding.reason = "the loader gives " + a_second(loader.rate.median) + ", " +
                   ratio(loader.rate.median, trainer) + " of what the trainer takes (" +
                   a_second(trainer) + "), and the bottleneck is " + what_it_does(narrow.kind) +
                   ": " + a_second(narrow.rate.median);
  switch (finding.fault) {
    case Fault::kStorage:
      advise_storage(measured, narrow, finding);
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
    case Fault::kCopy:
    case Fault::kTinyBatch:
      LOCKSTEP_CHECK(false, "no data fault");
  }
  return finding;
}

// Enough samples a slot that a step is no longer mostly fixed cost. With t(B) = a + bB the fixed
// cost a is 2 t(B) - t(2B), and B' = 2a/b makes it a third. At most as many as the data have.
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

FaultFinding tiny_batch(const Measurements& measured) {
  const Setting& setting = measured.setting;
  FaultFinding finding;
  finding.fault = Fault::kTinyBatch;
  finding.reason = "the loader is fast enough, but twice the samples (" +
                   std::to_string(setting.slot_samples) + " a slot now) make a step only " +
                   ratio(measured.double_step_s, measured.step_s) +
                   " times as long: most of a step is fixed cost";
  const bool can_use_graphs = setting.can_use_graphs && !setting.uses_graphs;
  const uint64_t batch = slot_for(measured) * setting.slots;
  if (can_use_graphs)
    finding.changes = {{"train.graph", "on", false}};
  else if (batch > setting.global_batch)
    finding.changes = {{"train.global_batch", std::to_string(batch), true}};
  finding.advice = {"a larger batch needs another learning rate",
                    "train.global_batch=auto takes the largest that fits into memory"};
  if (can_use_graphs)
    finding.advice.push_back(
        "train.graph=on launches forward and backward of a built-in model as one CUDA graph; if "
        "that is not enough, use a larger train.global_batch");
  return finding;
}

std::string megabytes(uint64_t bytes) {
  return rounded(static_cast<double>(bytes) / 1e6) + " MB";
}

FaultFinding slow_copy(const Measurements& measured, double trainer, double resident) {
  const Setting& setting = measured.setting;
  FaultFinding finding;
  finding.fault = Fault::kCopy;
  finding.reason = "the loader is fast enough, but the trainer takes " + a_second(resident) +
                   " from a batch in GPU memory, " + ratio(resident, trainer) +
                   " times its rate from host memory (" + a_second(trainer) +
                   "): the trainer waits for copies of " +
                   megabytes(setting.slot_samples * setting.input_bytes) + " a slot";
  // A slot is copied while the one before is computed: a slot that is alone waits for all of it.
  const uint64_t slots = uint64_t{2} * setting.slots;
  if (setting.slots <= setting.workers && slots <= setting.global_batch && slots <= limits::kSlots)
    finding.changes = {{"train.slots", std::to_string(slots), true}};
  finding.advice = {
      "slots already go through pinned memory, and images as bytes, so only smaller images have "
      "fewer bytes to copy (random_resized_crop or center_crop in data.transforms, or store "
      "smaller images)",
      "`nvidia-smi -q` tells whether the GPU's link has its full width and generation"};
  return finding;
}

// Whether to compute the same batch in half as many slots, each twice as large: if the measurement
// shows fewer seconds a sample. On a GPU each worker keeps two slots: it copies one while it
// computes the other.
bool gains_by_fewer_slots(const Measurements& measured) {
  const Setting& setting = measured.setting;
  const uint32_t fewest = setting.is_on_gpu ? 4 : 2;  // of a worker now
  return setting.slots % (2 * setting.workers) == 0 && setting.slots >= fewest * setting.workers &&
         measured.double_step_s > 0 && measured.double_step_s < kFullGrowth * measured.step_s;
}

FaultFinding no_fault(const Measurements& measured, double trainer) {
  FaultFinding finding;
  const Rung& loader = measured.loader();
  finding.reason = "the loader gives " + ratio(loader.rate.median, trainer) +
                   " times what the trainer takes (" + a_second(trainer) + ")";
  if (measured.double_step_s > 0)
    finding.reason += ", and twice the samples make a step " +
                      ratio(measured.double_step_s, measured.step_s) +
                      " times as long: the trainer computes all the time";
  finding.advice = {"more workers share the computation (cluster.workers)"};
  const Setting& setting = measured.setting;
  if (setting.is_on_gpu && setting.precision == "fp32")
    finding.changes = {{"train.precision", "bf16", true}};
  else if (gains_by_fewer_slots(measured))
    finding.changes = {{"train.slots", std::to_string(setting.slots / 2), true}};
  if (setting.is_on_gpu)
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
    case Fault::kCopy:
      return "copy";
    case Fault::kTinyBatch:
      return "tiny_batch";
  }
  return "";
}

FaultFinding decide(const Measurements& measured) {
  const Rung* trainer = measured.find(RungKind::kTrainer);
  LOCKSTEP_CHECK(trainer != nullptr && measured.find(RungKind::kLoader) != nullptr,
                 "a ladder without its ends");
  const double rate = trainer->rate.median;
  if (measured.loader().rate.median < kEnough * rate) return data_fault(measured, rate);
  const Rung* resident = measured.find(RungKind::kResident);
  if (resident != nullptr && resident->rate.median >= kEnough * rate)
    return slow_copy(measured, rate, resident->rate.median);
  const bool is_tiny =
      measured.double_step_s > 0 && measured.double_step_s < kStepGrowth * measured.step_s;
  return is_tiny ? tiny_batch(measured) : no_fault(measured, rate);
}

}  // namespace lockstep::doctor
