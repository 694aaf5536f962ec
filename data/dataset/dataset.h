// A dataset as training sees it: numbered samples of one shape with integer labels, read-only.
//
// A sample is one of
//   - an image, uint8 in (C, H, W) or (H, W, C) order, with one label
//   - a row of a table, float32, with one label
//   - a sequence of tokens, whose labels are the tokens that follow each.
// What lies on disk, compressed or not, is behind this interface. open_dataset() checks everything
// that can be wrong with files that stay as they are.
//
// INVARIANTS
//  D1 The fingerprint depends on the logical records only: it is the same for gzipped and plain
//     files, wherever they lie and whatever their names and times.
//  D2 Data files are mapped. Nobody may write to them or truncate them while a run uses them;
//     replacing them by rename is harmless. A reader of samples asks afterwards whether a file
//     changed (unchanged()). Reading itself always ends, whatever becomes of a file.
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

// Positions of an epoch: every sample once. For a mixture every sample of its first data set once,
// and the samples of the others in between.
uint64_t epoch_units(const Dataset& train);

}  // namespace lockstep::data
