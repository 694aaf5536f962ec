// A dataset as training sees it: numbered samples of one shape with integer labels, read-only.
//
// A sample is one of
// - an image, uint8 in (C, H, W) or (H, W, C) order, with one label
// - a row of a table, float32, with one label
// - a sequence of tokens; the label of each token is the token that follows.
//
// A Dataset has three parts: facts, which depend on no sample; sources, which have the samples and
// implement the interfaces of samples.h; and numbers. A data set of a format has one source and its
// numbers. A view, as a held-out part or a mixture, has facts and numbers of its own over the
// sources of others (but a part of whole documents has a source of its own,
// WholeDocuments::part()):
//
//   facts     DatasetFacts
//   numbers   i ──▶ SamplePlace{source, number in the source}
//   sources   StoredSamples, EncodedImages or Sequences; all of one kind
//
// So a view answers no question about a sample by itself, and a new question changes no view.
// Code that reads samples asks once what they are, as<EncodedImages>(), and then each of them.
//
// A Dataset hides what lies on disk, compressed or not. open_dataset() checks everything that can
// be wrong with files that do not change afterwards.
//
// INVARIANTS
//  D1 The fingerprint depends on the logical records only. It is the same for gzipped and plain
//     files, wherever the files lie and whatever their names and times.
//  D2 Data files are mapped. No program may write to them or truncate them while a run uses them.
//     Replacing a file by rename is harmless. A reader of samples asks afterwards whether a file
//     changed (unchanged()). A read always ends, whatever happens to its file.
//  D3 All sources of a data set have the same interfaces, and samples of the same shape.
//
// Thread-safety: a Dataset is immutable; all calls from any thread. Any number of processes may
// open the same dataset with the same cache directory at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/status.h"
#include "comm/run/plan/mixture.h"
#include "data/base/source_notes.h"
#include "data/dataset/channel_statistics.h"
#include "data/dataset/sample_shape.h"
#include "data/dataset/samples.h"
#include "data/io/file_extent.h"

namespace lockstep::source {
class RemoteFiles;
}

namespace lockstep::data {

// A view copies the facts of its whole and changes those that differ.
struct DatasetFacts {
  uint64_t samples = 0;  // > 0
  SampleShape shape{};
  uint32_t classes = 0;  // largest label + 1, or the vocabulary's size
  // A name of kNamedFormats (comm/run/job/data_formats.h): what the files are, so never "auto", and
  // "tokens" or "arrow_images" where they turned out to be these.
  std::string format{};
  std::string fingerprint{};  // XXH3-128, 32 hex digits
  // By channel, of this dataset; empty for sequences. Lockstep normalises evaluation data with the
  // statistics of the training data.
  std::vector<ChannelStatistics> statistics{};
  std::vector<std::string> files{};         // for people to read
  std::vector<std::string> class_names{};   // by label; empty without names
  std::vector<std::string> column_names{};  // of rows, without the label; empty without names
  SourceNotes notes{};                      // of files, for people to read
  std::vector<MixedPart> parts{};           // of a mixture, data.train first; else empty
  // The remote files that samples come from; empty if all are local. Only encoded images are
  // remote.
  std::vector<std::shared_ptr<const source::RemoteFiles>> far{};
  // Null if the data set does not keep documents apart.
  std::shared_ptr<const WholeDocuments> documents{};
};

// Where a sample is: the number of its source in the data set, and its number in the source.
struct SamplePlace {
  size_t source = 0;
  uint64_t number = 0;
};

template <class Interface>
class As;

class Dataset final {
 public:
  // All samples of one source, by its numbers.
  Dataset(DatasetFacts facts, std::shared_ptr<const Samples> source)
      : facts_(std::move(facts)), sources_{std::move(source)} {}

  // Views, which share the sources. `number_of`: the number here of sample i < facts.samples of the
  // view; called from any thread. join(): samples of the parts, one part after another. REQUIRES:
  // the facts fit; there is a part; the parts fit each other (facts.h).
  std::unique_ptr<Dataset> view(DatasetFacts facts,
                                std::function<uint64_t(uint64_t i)> number_of) const;
  static std::unique_ptr<Dataset> join(DatasetFacts facts, std::span<const Dataset* const> parts);

  const DatasetFacts& facts() const { return facts_; }
  uint64_t samples() const { return facts_.samples; }
  const SampleShape& shape() const { return facts_.shape; }
  uint32_t classes() const { return facts_.classes; }
  const std::string& format() const { return facts_.format; }
  const std::string& fingerprint() const { return facts_.fingerprint; }
  const std::vector<ChannelStatistics>& statistics() const { return facts_.statistics; }
  const std::vector<std::string>& files() const { return facts_.files; }
  const std::vector<std::string>& class_names() const { return facts_.class_names; }
  const std::vector<std::string>& column_names() const { return facts_.column_names; }
  const SourceNotes& notes() const { return facts_.notes; }
  const std::vector<MixedPart>& parts() const { return facts_.parts; }
  const auto& far() const { return facts_.far; }
  const WholeDocuments* documents() const { return facts_.documents.get(); }

  // Whether the samples have this interface. as() is empty if they have not; it allocates, so ask
  // once.
  template <class Interface>
  bool is() const {
    return dynamic_cast<const Interface*>(sources_.front().get()) != nullptr;
  }
  template <class Interface>
  std::optional<As<Interface>> as() const;

  // REQUIRES for the rest: i < samples().
  SamplePlace place_of(uint64_t i) const { return find(numbers_, i); }

  // As Samples.
  std::string name_of(uint64_t i) const;
  std::string label_name_of(uint64_t i) const;
  std::optional<FileExtent> extent(uint64_t i) const;
  Status unchanged(std::span<const uint64_t> samples) const;

 private:
  template <class Interface>
  friend class As;
  using Numbers = std::function<SamplePlace(uint64_t i)>;  // empty: the numbers of the only source

  Dataset(DatasetFacts facts, std::vector<std::shared_ptr<const Samples>> sources, Numbers numbers)
      : facts_(std::move(facts)), sources_(std::move(sources)), numbers_(std::move(numbers)) {}

  static SamplePlace find(const Numbers& numbers, uint64_t i) {
    return numbers ? numbers(i) : SamplePlace{0, i};
  }

  DatasetFacts facts_;
  std::vector<std::shared_ptr<const Samples>> sources_;  // not empty
  Numbers numbers_;
};

// The samples of a data set by one interface of samples.h. The data set outlives it.
template <class Interface>
class As {
 public:
  // A sample, to be asked for by its number in its source: from.label(number).
  struct Found {
    const Interface& from;
    uint64_t number = 0;
  };

  const Dataset& dataset() const { return *dataset_; }
  Found at(const SamplePlace& place) const { return {*sources_[place.source], place.number}; }
  Found at(uint64_t i) const { return at(dataset_->place_of(i)); }

 private:
  friend class Dataset;
  explicit As(const Dataset& dataset) : dataset_(&dataset) {
    for (const auto& source : dataset.sources_) {
      sources_.push_back(dynamic_cast<const Interface*>(source.get()));
      LOCKSTEP_CHECK(sources_.back() != nullptr, "sources of one kind");
    }
  }

  const Dataset* dataset_;
  std::vector<const Interface*> sources_;
};

template <class Interface>
std::optional<As<Interface>> Dataset::as() const {
  if (!is<Interface>()) return std::nullopt;
  return As<Interface>(*this);
}

// Positions of an epoch: every sample once. For a mixture every sample of its first data set once,
// and the samples of the others in between.
uint64_t epoch_units(const Dataset& train);

}  // namespace lockstep::data
