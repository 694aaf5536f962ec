// Measurements of one worker of a job, for a diagnosis: the ladder from the stored bytes to the
// trainer. A rung is the most that everything up to it can deliver, in samples/s.
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

// Samples/s over some short windows.
struct Rate {
  double median = 0;
  double low = 0;
  double high = 0;
  uint32_t windows = 0;
};

// `windows`: the rate of each window. REQUIRES: at least one window.
Rate rate_of(std::vector<double> windows);

enum class RungKind {
  kRawCold,     // bytes of samples out of their files, which are not in memory
  kRaw,         // the same, from memory if the system has kept them
  kDecode,      // from bytes in hand to pixels; encoded images only
  kSamples,     // from stored samples to a batch's content: read, decoded, varied, as floats
  kLoaderCold,  // batches of the real Loader, from files that are not in memory
  kLoader,      // the same, from memory if the system has kept them
  kTrainer,     // steps of the real model, on a batch in the host's memory
  kResident,    // the same, on a batch already on the GPU; GPUs only
};
inline constexpr size_t kRungKinds = static_cast<size_t>(RungKind::kResident) + 1;

// "raw_cold", for JSON.
std::string_view rung_name(RungKind kind);

struct Rung {
  RungKind kind = RungKind::kRaw;
  Rate rate;
  double limit = 0;   // the most this machine could do there, in samples/s; 0: not known
  std::string bound;  // what sets the limit, for people: "memcpy", "8 cores at one thread's rate"
};

// Facts about the job and the machine that the decision needs.
struct Setting {
  uint64_t samples = 0;  // of the training data
  uint64_t global_batch = 0;
  uint32_t slots = 0;
  uint64_t slot_samples = 0;  // B: how many are computed at a time
  uint32_t workers = 1;       // how many share the slots
  uint64_t input_bytes = 0;   // of one sample in a batch, with its labels
  uint32_t data_threads = 1;  // for decoding
  uint32_t cores = 1;         // one worker's share of this machine
  uint32_t prefetch_batches = 1;
  bool is_encoded = false;  // images that need decoding
  bool is_on_gpu = false;
  bool uses_graphs = false;
  bool can_use_graphs = false;  // a GPU's slots could use them if train.graph were on
  std::string precision = "fp32";
  uint32_t gpu_capability = 0;      // compute capability times ten: 89 is 8.9; 0: not known
  bool can_shuffle_blocks = false;  // data.shuffle=block would be another order, and fits the job
  uint32_t read_ahead_mb = 0;
};

struct Measurements {
  Setting setting;
  std::vector<Rung> rungs;  // upwards; at most one of each kind
  // Seconds of a step of B samples, and of a step of 2B samples: the shortest ones seen. On a CPU:
  // the cores' time for it. 0: not measured.
  double step_s = 0;
  double double_step_s = 0;
  // Share of the samples' bytes that left memory before the cold rungs. 0: none did, and there are
  // no cold rungs.
  double cold_share = 0;
  std::vector<std::string> notes;  // what was not measured, and why

  const Rung* find(RungKind kind) const;
  // The Loader as the run meets it: the run reads a sample once an epoch, so the cold rung if there
  // is one. REQUIRES: the rung kLoader.
  const Rung& loader() const;
};

}  // namespace lockstep::doctor
