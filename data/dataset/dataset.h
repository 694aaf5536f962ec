// A dataset as training sees it: numbered samples of one shape with integer labels, read-only.
//
// A sample is an image, uint8 in (C, H, W) or (H, W, C) order with one label, a row of a table,
// float32 with one label, or a sequence of tokens whose labels are the tokens that follow each.
// What lies on disk, compressed or not, is behind this interface; opening checks everything that
// can be wrong with files that stay as they are.
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
//  D2 Data files are mapped and must not be written to or cut off while a run uses them; replacing
//     them by rename is harmless. Whoever reads samples asks afterwards whether it happened
//     (unchanged()): reading itself always ends, whatever becomes of a file.
//
// Thread-safety: a Dataset is immutable; all calls from any thread. Any number of processes may
// open the same dataset with the same cache directory at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "data/image/image_decoder.h"
#include "data/io/file_extent.h"
#include "data/order/mixture.h"
#include "data/source/remote_files.h"

namespace lockstep::data {

struct SampleShape {
  uint32_t channels = 0;  // of an image; 0 of a sequence
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t tokens = 0;       // of a sequence; 0 of an image
  uint32_t token_bytes = 0;  // as stored, little-endian: 1, 2, 4 or 8
  // Of an image: stored as (H, W, C). Whoever reads samples for a model (read/sample_reader.h)
  // turns them into (C, H, W), so that files which may be large are read where they lie.
  bool channels_last = false;
  // A row of a table: an image of 1 x 1, each channel a column, of float32 instead of bytes.
  bool is_row = false;
  // A sequence of several documents: behind its tokens are as many positions, each counted from the
  // first token of its document, so that a model can tell them apart.
  bool has_positions = false;
  // A sequence of one document, of which a batch may leave out the padding that all have behind
  // them (read/cut_padding.h): it is shorter than `tokens` then.
  bool is_padded = false;

  bool is_sequence() const { return tokens > 0; }
  // Values that a model gets of one sample: floats of an image, token ids of a sequence, and their
  // positions.
  uint64_t elements() const {
    if (is_sequence()) return has_positions ? uint64_t{2} * tokens : tokens;
    return uint64_t{channels} * height * width;
  }
  // Predictions that a model makes of one sample.
  uint64_t labels() const { return is_sequence() ? tokens : 1; }
  // As stored: of a sequence its tokens and the one behind them, which is the last label. Bounded
  // by limits::kSampleBytes.
  uint64_t stored_bytes() const {
    if (is_sequence()) return (uint64_t{tokens} + 1) * token_bytes;
    return elements() * (is_row ? sizeof(float) : 1);
  }
  bool operator==(const SampleShape&) const = default;
};

// Of one channel over all samples, for values scaled to [0, 1], or of a column as they are; the
// deviation is the population's.
struct ChannelStatistics {
  double mean = 0;
  double std = 0;
  bool operator==(const ChannelStatistics&) const = default;
};

// Of tokens whose documents are kept apart.
struct DocumentCounts {
  uint64_t documents = 0;
  uint64_t too_short = 0;    // left out: of one token or none, where nothing can be predicted
  uint64_t pieces = 0;       // of documents, none longer than a sequence
  uint64_t predictions = 0;  // in all samples; the rest of these is padding
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual uint64_t samples() const = 0;  // > 0
  virtual SampleShape shape() const = 0;
  virtual uint32_t classes() const = 0;  // largest label + 1, or the vocabulary
  // "idx", "cifar10", "cifar100", "npy", "npz", "safetensors", "arrow", "csv", "image_folder",
  // "webdataset", "tfrecord", "mds", "arrow_images"; "tokens", "megatron", "text", "arrow_tokens".
  virtual const std::string& format() const = 0;
  virtual const std::string& fingerprint() const = 0;  // XXH3-128, 32 hex digits
  // By channel, of this dataset; none of sequences. Evaluation data are normalised with those of
  // the training data.
  virtual const std::vector<ChannelStatistics>& statistics() const = 0;
  // The files it is read from, for people.
  virtual const std::vector<std::string>& files() const = 0;

  // shape().stored_bytes() bytes, valid as long as the dataset. REQUIRES: i < samples().
  // Null where encoded_form() is not.
  virtual const uint8_t* sample(uint64_t i) const = 0;
  // REQUIRES: an image. The labels of a sequence are in its sample.
  virtual uint32_t label(uint64_t i) const = 0;
  // Sequences that are made from several places, or have labels that do not count: sample() is null
  // then, and make_sequence() gives them.
  virtual bool makes_sequences() const { return false; }
  // REQUIRES of these two: makes_sequences(). `input`: shape().elements() token ids and positions;
  // `labels`: shape().labels(), kIgnoredLabel (comm/base/labels.h) where nothing is to be
  // predicted. Returns the largest token id among them.
  virtual int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const;
  // How many labels of the sample count: at least 1, all without make_sequence().
  virtual uint64_t counted_labels(uint64_t i) const;

  // Null where documents are not kept apart. Where they are, a part of the data has whole ones.
  virtual const DocumentCounts* document_counts() const { return nullptr; }
  // Names what samples are made of, however they are made: of documents the tokens.
  virtual const std::string& content() const { return fingerprint(); }
  // Those of its documents for which `chosen`, in the order of the files, is true; made into
  // samples as those of the whole are. It gets that fingerprint. REQUIRES: document_counts(), and
  // `chosen` has as many; one is chosen; the data are not such a part themselves.
  virtual std::unique_ptr<Dataset> of_documents(const std::vector<bool>& chosen,
                                                std::string fingerprint) const;

  // Where its bytes lie, for who reads them without sample() or read_encoded(): the same bytes.
  // Nothing where they do not lie here in one piece of a file, as they are stored.
  virtual std::optional<FileExtent> extent(uint64_t) const { return std::nullopt; }
  // kBadData naming a file with one of these samples, or their labels, that is no longer what it
  // was: whatever was read of them does not count. One system call a file.
  virtual Status unchanged(std::span<const uint64_t> samples) const = 0;

  // Samples that are decoded, cut or scaled: how they are wanted, as shape() has it, else null.
  virtual const WantedImage* encoded_form() const { return nullptr; }
  // REQUIRES of these two: encoded_form() is not null. The whole encoded image; kBadData naming the
  // file that is not what it was.
  virtual Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const;
  virtual std::string name_of(uint64_t i) const;  // for messages
  // Where labels stand for names, these, by label.
  virtual std::vector<std::string> class_names() const { return {}; }

  // Of rows, their columns without the label; none where they have no names.
  virtual std::vector<std::string> column_names() const { return {}; }

  // Of a mixture its data sets, data.train first; none where it is one data set.
  virtual std::span<const MixedPart> parts() const { return {}; }

  // What the samples are read from, where that is far away; else null. Of a mixture one of them.
  virtual const source::RemoteFiles* far() const { return nullptr; }
  virtual std::vector<const source::RemoteFiles*> all_far() const {
    return far() == nullptr ? std::vector<const source::RemoteFiles*>() : std::vector{far()};
  }
  // REQUIRES: far() is not null. Sample i, which has so many bytes, will be read soon: it is
  // fetched meanwhile.
  virtual uint64_t announce(uint64_t) const { return 0; }
};

// Positions of an epoch: every sample once; of a mixture every one of its first data set, and what
// the others have in between.
uint64_t epoch_units(const Dataset& train);

// How the documents of a data set of tokens become sequences.
enum class Documents {
  kStream,  // one after another, cut wherever a sequence ends
  kPad,     // each by itself, with nothing to be predicted behind its end
  kPack,    // several in a sequence, none of which sees the others
};

// What of a job decides how files become samples.
struct SampleCut {
  uint32_t block = 0;              // tokens of a sequence
  uint32_t vocab = 0;              // different tokens; 0: as many as the files have
  ImageFrame frame{};              // of images
  source::CacheOptions cache{};    // of data that are far away
  std::string tokenizer{};         // of text (data/bpe/vocabulary.h); empty: every byte is a token
  std::string tokenizer_sha256{};  // of that, in hex; empty: whatever it is
  Documents documents = Documents::kStream;
  std::optional<uint64_t> document_end{};  // the token that ends one; nothing: as the files say
  bool by_length = false;                  // kPad: samples are numbered from short to long
  // Data that are far away, once they are found (find_place()).
  std::shared_ptr<source::RemoteFiles> far{};
};
SampleCut sample_cut(const wire::JobSpec& job);

enum class Split { kTrain, kEval };

// Where a run keeps inflated files and statistics: data.cache_dir, or its own directory.
std::string cache_directory(const wire::DataSpec& data, const std::string& run_dir);

// Called from the opening thread while something takes long (inflating, hashing); may be empty.
using ProgressFn =
    std::function<void(const std::string& what, uint64_t done_bytes, uint64_t total_bytes)>;

// Data at a URL, or on a slow mount (SampleCut::cache), as files here: a spec and a cut that
// everything below takes as if they were local. Of local data both as they are. Errors of
// source::RemoteFiles::open().
struct DataPlace {
  wire::DatasetSpec spec;
  SampleCut cut;
};
Result<DataPlace> find_place(const wire::DatasetSpec& spec, const std::string& cache_dir,
                             const ProgressFn& progress, const SampleCut& cut);

// By spec.format, which is one of kDataFormats (comm/wire/data_formats.h):
//
//   auto      as detect_format() finds it
//   idx       a directory with the standard IDX files (train-images..., train-labels... for kTrain,
//             t10k-... for kEval; gzipped or not), or with exactly one pair of images and labels of
//             whatever name, which then serves either split (idx_pair.h)
//   cifar10, cifar100  the directory of the binary version (cifar_files.h)
//   npy       a directory with NumPy arrays of images and labels (npy_pair.h), where (N, H, W, C)
//             and (N, C, H, W) are told apart by which axis has 1 to 4 entries; npy_nchw and
//             npy_nhwc say it, also of npz. Or arrays of tokens, which are `tokens`.
//   npz       a file or directory with archives of such arrays (npz_pair.h)
//   safetensors  a file or directory with such tensors (safetensors_files.h), or, like npy, tokens
//   csv       a file or directory of tables, *.csv or *.tsv (csv_dataset.h)
//   image_folder  a directory with one for each class, of JPEG and PNG files (image_folder.h)
//   webdataset, tfrecord, mds  shards with JPEG or PNG images and labels (webdataset.h, tfrecord.h,
//             mds.h)
//   arrow     Arrow IPC files with pixels, or with one of the next two, which it then stands for
//   arrow_images, arrow_tokens  such files with JPEG or PNG images, or tokens (arrow_choice.h)
//   tokens, tokens_u32, megatron, text  a file or a directory (token_files.h)
//
// All are mapped and read where they lie, but gzipped IDX files, compressed arrays, and shards that
// are compressed as a whole (packed_shards.h): these are inflated once into `cache_dir`, which is
// created when missing; and so are the tokens of text with
// SampleCut::tokenizer (tokenized_text.h). Encoded images are found through
// an index there (extent_index.h), and read as they are needed.
Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& spec, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress = {},
                                              const SampleCut& cut = {});

// A dataset in memory, for tests and benchmarks. `pixels` holds the samples one after another.
// kBadData when sizes do not fit, or there is no sample.
Result<std::unique_ptr<Dataset>> make_memory_dataset(SampleShape shape, std::vector<uint8_t> pixels,
                                                     std::vector<uint32_t> labels);

}  // namespace lockstep::data
