// A dataset as training sees it: numbered samples of one shape with integer labels, read-only.
//
// A sample is one of
// - an image, uint8 in (C, H, W) or (H, W, C) order, with one label
// - a row of a table, float32, with one label
// - a sequence of tokens; the label of each token is the token that follows.
//
// This interface hides what lies on disk, compressed or not. open_dataset() checks everything that
// can be wrong with files that do not change afterwards.
//
// INVARIANTS
//  D1 The fingerprint depends on the logical records only. It is the same for gzipped and plain
//     files, wherever the files lie and whatever their names and times.
//  D2 Data files are mapped. Nobody may write to them or truncate them while a run uses them.
//     Replacing a file by rename is harmless. A reader of samples asks afterwards whether a file
//     changed (unchanged()). A read always ends, whatever happens to its file.
//
// Thread-safety: a Dataset is immutable; all calls from any thread. Any number of processes may
// open the same dataset with the same cache directory at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/channel_statistics.h"
#include "data/dataset/document_counts.h"
#include "data/dataset/sample_shape.h"
#include "data/io/file_extent.h"
#include "data/order/mixture.h"

namespace lockstep::source {
class RemoteFiles;
}

namespace lockstep::data {

struct WantedImage;

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual uint64_t samples() const = 0;  // > 0
  virtual SampleShape shape() const = 0;
  virtual uint32_t classes() const = 0;  // largest label + 1, or the vocabulary's size
  // "idx", "cifar10", "cifar100", "npy", "npz", "safetensors", "arrow", "csv", "image_folder",
  // "webdataset", "tfrecord", "mds", "arrow_images"; "tokens", "megatron", "text", "arrow_tokens".
  virtual const std::string& format() const = 0;
  virtual const std::string& fingerprint() const = 0;  // XXH3-128, 32 hex digits
  // By channel, of this dataset; empty for sequences. Lockstep normalises evaluation data with the
  // statistics of the training data.
  virtual const std::vector<ChannelStatistics>& statistics() const = 0;
  // The files of the dataset, for people to read.
  virtual const std::vector<std::string>& files() const = 0;

  // shape().stored_bytes() bytes, valid as long as the dataset. Null if encoded_form() is not null.
  // REQUIRES: i < samples().
  virtual const uint8_t* sample(uint64_t i) const = 0;
  // REQUIRES: an image or a row. A sequence has its labels in its sample.
  virtual uint32_t label(uint64_t i) const = 0;
  // True if sequences come from several places, or have labels that do not count. Then sample() is
  // null, and make_sequence() makes the sequences.
  virtual bool makes_sequences() const { return false; }
  // REQUIRES for this and the next function: makes_sequences(). `input` gets shape().elements()
  // token ids and positions. `labels` gets shape().labels() labels, kIgnoredLabel
  // (comm/base/labels.h) where there is nothing to predict. Returns the largest token id among
  // them.
  virtual int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const;
  // The number of labels of the sample that count: at least 1; all of them without make_sequence().
  virtual uint64_t counted_labels(uint64_t i) const;

  // Null if the dataset does not keep documents apart. If it does, a part of the data has whole
  // documents.
  virtual const DocumentCounts* document_counts() const { return nullptr; }
  // Names what the samples are made of, whatever the way of making them. For documents: the tokens.
  virtual const std::string& content() const { return fingerprint(); }
  // The documents with a true entry in `chosen`, in the order of the files. The part makes samples
  // as the whole does, and gets the given fingerprint. REQUIRES: document_counts(); `chosen` has an
  // entry for each document; at least one entry is true; this dataset is not such a part itself.
  virtual std::unique_ptr<Dataset> of_documents(const std::vector<bool>& chosen,
                                                std::string fingerprint) const;

  // Where the bytes of sample i lie, for code that reads them without sample() or read_encoded();
  // the bytes are the same. Empty if the sample does not lie here, as stored, in one piece of a
  // file.
  virtual std::optional<FileExtent> extent(uint64_t) const { return std::nullopt; }
  // kBadData if a file with one of these samples or their labels changed; the message names the
  // file. Then nothing read of these samples counts. One system call a file.
  virtual Status unchanged(std::span<const uint64_t> samples) const = 0;

  // The wanted form (as in shape()) of samples that must be decoded, cut or scaled; else null.
  virtual const WantedImage* encoded_form() const { return nullptr; }
  // REQUIRES for this and the next function: encoded_form() is not null. Reads the whole encoded
  // image. kBadData, naming the file, if the file changed.
  virtual Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const;
  virtual std::string name_of(uint64_t i) const;  // for messages
  // The names that labels stand for, by label; empty without names.
  virtual std::vector<std::string> class_names() const { return {}; }

  // For rows: the names of the columns without the label; empty without names.
  virtual std::vector<std::string> column_names() const { return {}; }

  // For a mixture: its data sets, data.train first; empty for a single data set.
  virtual std::span<const MixedPart> parts() const { return {}; }

  // The remote files that the samples come from; null if they are local. For a mixture: one of its
  // data sets' remote files.
  virtual const source::RemoteFiles* far() const { return nullptr; }
  virtual std::vector<const source::RemoteFiles*> all_far() const {
    return far() == nullptr ? std::vector<const source::RemoteFiles*>() : std::vector{far()};
  }
  // Announces that sample i will be read soon, and starts fetching it. Returns the sample's bytes.
  // REQUIRES: far() is not null.
  virtual uint64_t announce(uint64_t) const { return 0; }
};

// Positions of an epoch: every sample once. For a mixture every sample of its first data set once,
// and the samples of the others in between.
uint64_t epoch_units(const Dataset& train);

}  // namespace lockstep::data
