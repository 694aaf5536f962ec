// The samples of one source: files, an index over files, or memory. A format implements these
// interfaces; a Dataset (dataset.h) numbers the samples of one source or of several.
//
// Samples are of one of three kinds:
//
//   StoredSamples  bytes in memory, mapped or read, as they are used. Images and rows also have
//                  Labels. Sequences of tokens have no Labels: the label of a token is the next.
//   EncodedImages  images that must be decoded, cut or scaled, with Labels
//   Sequences      sequences that are put together from several places, or with labels that do not
//                  count
//
// Samples with more than an input and a label also have SampleFields; encoded images also have
// SampleMasks.
//
// Samples are numbered within the source, from 0 on. REQUIRES of every function with a number: the
// source has this sample.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/document_counts.h"
#include "data/io/file_extent.h"

namespace lockstep::data {

class Dataset;
struct WantedImage;

// The interface that all kinds share.
class Samples {
 public:
  virtual ~Samples() = default;

  // For messages.
  virtual std::string name_of(uint64_t i) const {
    return "sample " + std::to_string(i) + " of the data";
  }
  // Where the label of sample i stands, for messages.
  virtual std::string label_name_of(uint64_t i) const { return name_of(i); }
  // Where the bytes of sample i lie, for code that reads them by itself; the bytes are the same.
  // Empty if the sample does not lie here, as stored, in one piece of a file.
  virtual std::optional<FileExtent> extent(uint64_t) const { return std::nullopt; }
  // kBadData if a file with one of these samples or their labels changed; the message names the
  // file. Then nothing read of these samples counts. One system call a file.
  virtual Status unchanged(std::span<const uint64_t> samples) const = 0;
};

// Samples with one label each: images and rows of tables.
class Labels {
 public:
  virtual ~Labels() = default;
  virtual uint32_t label(uint64_t i) const = 0;  // 0 without SampleShape::has_label()
};

// Samples with fields (SampleShape::fields).
class SampleFields {
 public:
  virtual ~SampleFields() = default;
  // Writes the record of sample i, record_bytes() bytes at a multiple of 8, except for fields that
  // follow the image. kBadData, naming file and sample, for a value that no model can take.
  virtual Status read_record(uint64_t i, std::byte* record) const = 0;
};

class StoredSamples : public Samples {
 public:
  // SampleShape::stored_bytes() bytes, valid as long as the source.
  virtual const uint8_t* sample(uint64_t i) const = 0;
};

class EncodedImages : public Samples, public Labels {
 public:
  // The form of all samples once they are decoded, as in the data set's shape.
  virtual const WantedImage& wanted() const = 0;
  // Reads the whole encoded image. kBadData, naming the file, if the file changed.
  virtual Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const = 0;
  // Says that sample i will be read soon. A remote source starts fetching it. Returns the bytes
  // that are fetched, 0 of a local sample.
  virtual uint64_t announce(uint64_t) const { return 0; }
};

// Encoded images with masks: one for each field that follows the image, in the order of the fields.
class SampleMasks {
 public:
  virtual ~SampleMasks() = default;
  // Reads the whole encoded mask. kBadData, naming the file, if the file changed.
  virtual Status read_mask(uint64_t i, size_t mask, std::vector<uint8_t>& out) const = 0;
  virtual std::string mask_name(uint64_t i, size_t mask) const = 0;  // for messages
};

class Sequences : public Samples {
 public:
  // `input` gets SampleShape::elements() token ids and positions. `labels` gets
  // SampleShape::labels() labels, kIgnoredLabel (comm/base/labels.h) where there is nothing to
  // predict. Returns the largest token id among them.
  virtual int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const = 0;
  // The number of labels of the sample that count: at least 1.
  virtual uint64_t counted_labels(uint64_t i) const = 0;
};

// A source that keeps documents apart. A part of it has whole documents.
class WholeDocuments {
 public:
  virtual ~WholeDocuments() = default;
  virtual const DocumentCounts& counts() const = 0;
  // Names the tokens, whatever makes samples of them.
  virtual const std::string& content() const = 0;
  // The documents with a true entry in `chosen`, in the order of the files. The part makes samples
  // as the whole does, and gets the given fingerprint. REQUIRES: `chosen` has an entry for each
  // document; at least one entry is true; this source is not such a part itself.
  virtual std::unique_ptr<Dataset> part(const std::vector<bool>& chosen,
                                        std::string fingerprint) const = 0;
};

}  // namespace lockstep::data
