// What a diagnosis measures of one worker of a job: the ladder from the stored bytes to the
// trainer. Every rung is what all below it can deliver at most, in samples a second.
//
//   raw, cold ─▶ raw ─▶ decode ─▶ samples ─▶ batches ─▶ trainer ─▶ trainer, on the GPU
//   files that   bytes   pixels    varied,    of the     steps on    steps on a batch that
//   were put     in      of them   floats     real       a batch     lies in the GPU's memory
//   out of       hand                         Loader,    in memory   already
//   memory                                    cold and warm
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::doctor {

// Samples a second, over some short windows.
struct Rate {
  double median = 0;
  double low = 0;
  double high = 0;
  uint32_t windows = 0;
};

// Of at least one window, each with its rate.
Rate rate_of(std::vector<double> windows);

enum class RungKind {
  kRawCold,     // bytes of samples out of their files, which are not in memory
  kRaw,         // the same, from memory where the system has kept them
  kDecode,      // bytes in hand to pixels; of encoded images only
  kSamples,     // stored samples to what a batch holds: read, decoded, varied, as floats
  kLoaderCold,  // batches of the real Loader, of files that are not in memory
  kLoader,      // the same, from memory where the system has kept them
  kTrainer,     // steps of the real model, on a batch that waits for it in the host's memory
  kResident,    // the same, on a batch that the GPU has already; only there
};
inline constexpr size_t kRungKinds = static_cast<size_t>(RungKind::kResident) + 1;

// "raw_cold": of JSON.
std::string_view rung_name(RungKind kind);

struct Rung {
  RungKind kind = RungKind::kRaw;
  Rate rate;
  double limit = 0;   // what this machine could do at most there, in samples a second; 0: not known
  std::string bound;  // what that limit is, for people: "memcpy", "8 cores at one thread's rate"
};

// Of the job and the machine, what the decision needs.
struct Setting {
  uint64_t samples = 0;  // of the training data
  uint64_t global_batch = 0;
  uint32_t slots = 0;
  uint64_t slot_samples = 0;  // B: what is computed at a time
  uint32_t workers = 1;       // that share the slots
  uint64_t input_bytes = 0;   // of a sample in a batch, with its labels
  uint32_t data_threads = 1;  // that decode
  uint32_t cores = 1;         // of one worker's share of this machine
  uint32_t prefetch_batches = 1;
  bool is_encoded = false;  // images that have to be decoded
  bool is_on_gpu = false;
  bool uses_graphs = false;
  bool can_use_graphs = false;  // a GPU's slots could, if train.graph were on
  std::string precision = "fp32";
  bool can_shuffle_blocks = false;  // data.shuffle=block is another order, and fits the job
  uint32_t read_ahead_mb = 0;
};

struct Measurements {
  Setting setting;
  std::vector<Rung> rungs;  // upwards; of each kind at most one
  // Seconds of a step of B, and of one of twice as many samples, each the shortest that was seen;
  // on a CPU the cores' time that they take. 0: not measured.
  double step_s = 0;
  double double_step_s = 0;
  // Share of the samples' bytes that could be put out of memory before the cold rungs. 0: none
  // could, and there are no such rungs.
  double cold_share = 0;
  std::vector<std::string> notes;  // what was not measured, and why

  const Rung* find(RungKind kind) const;
  // The Loader as the run meets it: a sample is read once an epoch, so cold where that was
  // measured. REQUIRES: the rung kLoader.
  const Rung& loader() const;
};

}  // namespace lockstep::doctor
