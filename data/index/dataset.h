// A dataset as training sees it: numbered samples of one shape with integer labels, read-only.
//
// A sample is an image, uint8 in (C, H, W) order with one label, or a sequence of tokens whose
// labels are the tokens that follow each. What lies on disk, compressed or not, is behind this
// interface; opening checks everything that can be wrong, so that reading cannot fail.
//
// ERRORS of open_dataset(), each one sentence that names the file and says what to do:
//   kNoInput  the directory or a file of the pair is not there
//   kBadData  truncated, corrupt or not what it says it is; counts that differ; no sample
//   kUsage    a format that is not known, or that cannot be told from the files
//   kInternal the cache cannot be written, or the machine failed to read
//
// INVARIANTS
//  D1 The fingerprint depends on the logical records only: the same for gzipped and plain files,
//     wherever they lie and whatever their names and times.
//  D2 Data files are mapped and must not be shortened while a run uses them; replacing them by
//     rename is harmless.
//
// Thread-safety: a Dataset is immutable; all calls from any thread. Any number of processes may
// open the same dataset with the same cache directory at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep::data {

struct SampleShape {
  uint32_t channels = 0;  // of an image; 0 of a sequence
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t tokens = 0;       // of a sequence; 0 of an image
  uint32_t token_bytes = 0;  // as stored, little-endian: 1, 2 or 4

  bool is_sequence() const { return tokens > 0; }
  // Values that a model gets of one sample: floats of an image, token ids of a sequence.
  uint64_t elements() const { return is_sequence() ? tokens : uint64_t{channels} * height * width; }
  // Predictions that a model makes of one sample.
  uint64_t labels() const { return is_sequence() ? tokens : 1; }
  // As stored: of a sequence its tokens and the one behind them, which is the last label. Bounded
  // by limits::kSampleBytes.
  uint64_t stored_bytes() const {
    return is_sequence() ? (uint64_t{tokens} + 1) * token_bytes : elements();
  }
  bool operator==(const SampleShape&) const = default;
};

// Of one channel over all samples, for values scaled to [0, 1]; the deviation is the population's.
struct ChannelStatistics {
  double mean = 0;
  double std = 0;
  bool operator==(const ChannelStatistics&) const = default;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual uint64_t samples() const = 0;  // > 0
  virtual SampleShape shape() const = 0;
  virtual uint32_t classes() const = 0;                // largest label + 1, or the vocabulary
  virtual const std::string& format() const = 0;       // "idx", "tokens", "text"
  virtual const std::string& fingerprint() const = 0;  // XXH3-128, 32 hex digits
  // By channel, of this dataset; none of sequences. Evaluation data are normalised with those of
  // the training data.
  virtual const std::vector<ChannelStatistics>& statistics() const = 0;
  // The files it is read from, for people.
  virtual const std::vector<std::string>& files() const = 0;

  // shape().stored_bytes() bytes, valid as long as the dataset. REQUIRES: i < samples().
  virtual const uint8_t* sample(uint64_t i) const = 0;
  // REQUIRES: an image. The labels of a sequence are in its sample.
  virtual uint32_t label(uint64_t i) const = 0;
};

// How files of tokens are cut into samples; of no use for images.
struct SequenceCut {
  uint32_t block = 0;  // tokens of a sequence
  uint32_t vocab = 0;  // different tokens; 0: as many as the files have
};
SequenceCut sequence_cut(const wire::ModelSpec& model);

enum class Split { kTrain, kEval };

// Where a run keeps inflated files and statistics: data.cache_dir, or its own directory.
std::string cache_directory(const wire::DataSpec& data, const std::string& run_dir);

// Called from the opening thread while something takes long (inflating, hashing); may be empty.
using ProgressFn =
    std::function<void(const std::string& what, uint64_t done_bytes, uint64_t total_bytes)>;

// spec.path is a directory with the standard IDX files (train-images..., train-labels... for
// kTrain, t10k-... for kEval; gzipped or not), or with exactly one pair of images and labels of
// whatever name, which then serves either split. Gzipped files are inflated once into `cache_dir`,
// which is created when missing; plain ones are mapped where they lie. Or it is a file of tokens or
// of text, or a directory of such (token_files.h).
Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& spec, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress = {},
                                              const SequenceCut& cut = {});

// A dataset in memory, for tests and benchmarks. `pixels` holds the samples one after another.
// kBadData when sizes do not fit, or there is no sample.
Result<std::unique_ptr<Dataset>> make_memory_dataset(SampleShape shape, std::vector<uint8_t> pixels,
                                                     std::vector<uint32_t> labels);

}  // namespace lockstep::data
