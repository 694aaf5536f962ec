#include "data/view/selected_dataset.h"

#include <charconv>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/facts.h"
#include "data/image/image_decoder.h"
#include "data/order/epoch_order.h"
#include "data/source/view/remote_files.h"
#include "data/view/selection.h"

namespace lockstep::data {
namespace {

// In the shortest form that reads back the same.
std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// The seed of a split is its own: runs with other seeds are compared on the same samples.
uint64_t key_of(const Dataset& whole, uint64_t seed) {
  return name_key("selection of " + whole.content() + " by " + std::to_string(seed)).low;
}

bool has_documents(const Dataset& whole) {
  return whole.document_counts() != nullptr;
}

std::string fingerprint_of(const Dataset& whole, const SelectionSpec& spec, Part part) {
  const bool is_kept = part == Part::kKept;
  const std::string text = "selection " + std::to_string(kSelectionVersion) +
                           (has_documents(whole) ? " of documents" : "") +
                           (is_kept ? " kept " : " held out ") + whole.fingerprint() + " " +
                           text_of(spec.held_out) + (is_kept ? " " + text_of(spec.kept) : "") +
                           " seed " + std::to_string(spec.seed);
  return xxh3_hex(text.data(), text.size());
}

class SelectedDataset final : public Dataset {
 public:
  SelectedDataset(std::shared_ptr<const Dataset> whole, const Selection& selection, Part part,
                  std::string fingerprint)
      : whole_(std::move(whole)),
        part_(part),
        selection_(selection),
        samples_(selection_.size(part)),
        fingerprint_(std::move(fingerprint)) {
    LOCKSTEP_CHECK(!whole_->makes_sequences(), "a sample lies in a file or is of documents");
  }

  uint64_t samples() const override { return samples_; }
  const std::string& fingerprint() const override { return fingerprint_; }

  SampleShape shape() const override { return whole_->shape(); }
  uint32_t classes() const override { return whole_->classes(); }
  const std::string& format() const override { return whole_->format(); }
  const std::vector<ChannelStatistics>& statistics() const override { return whole_->statistics(); }
  const std::vector<std::string>& files() const override { return whole_->files(); }
  const WantedImage* encoded_form() const override { return whole_->encoded_form(); }
  std::vector<std::string> class_names() const override { return whole_->class_names(); }
  std::vector<std::string> column_names() const override { return whole_->column_names(); }

  const uint8_t* sample(uint64_t i) const override { return whole_->sample(in_whole(i)); }
  uint32_t label(uint64_t i) const override { return whole_->label(in_whole(i)); }
  std::optional<FileExtent> extent(uint64_t i) const override {
    return whole_->extent(in_whole(i));
  }
  Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const override {
    return whole_->read_encoded(in_whole(i), out);
  }
  std::string name_of(uint64_t i) const override { return whole_->name_of(in_whole(i)); }
  const source::RemoteFiles* far() const override { return whole_->far(); }
  uint64_t announce(uint64_t i) const override { return whole_->announce(in_whole(i)); }

  Status unchanged(std::span<const uint64_t> samples) const override {
    std::vector<uint64_t> in_the_whole;
    in_the_whole.reserve(samples.size());
    for (const uint64_t i : samples) in_the_whole.push_back(in_whole(i));
    return whole_->unchanged(in_the_whole);
  }

 private:
  uint64_t in_whole(uint64_t i) const { return selection_.at(part_, i); }

  const std::shared_ptr<const Dataset> whole_;
  const Part part_;
  const Selection selection_;
  const uint64_t samples_;
  const std::string fingerprint_;
};

Status nothing_left(const Dataset& whole, const SelectionSpec& spec, Part part) {
  const DocumentCounts* documents = whole.document_counts();
  const std::string of =
      " of the " +
      (documents == nullptr ? std::to_string(whole.samples()) + " samples"
                            : std::to_string(documents->documents) + " documents") +
      " of " + first_file(whole);
  // Which may be few, and then nothing helps but that.
  const std::string instead =
      documents == nullptr ? ""
                           : " (documents are taken whole; data.documents: stream takes parts)";
  if (part == Part::kHeldOut)
    return {Code::kUsage, "a share of " + text_of(spec.held_out) + of +
                              " is less than one: none would be held out; take a larger "
                              "data.holdout" +
                              instead};
  if (spec.kept == 1)
    return {Code::kUsage, "to hold out a share of " + text_of(spec.held_out) + of +
                              " leaves none to train on; take a smaller data.holdout" + instead};
  return {Code::kUsage, "a share of " + text_of(spec.kept) + of +
                            (spec.held_out > 0 ? ", less those that are held out," : "") +
                            " is less than one; take a larger fraction" + instead};
}

Result<std::unique_ptr<Dataset>> select(const std::shared_ptr<const Dataset>& whole,
                                        const SelectionSpec& spec, Part part) {
  const uint64_t all =
      has_documents(*whole) ? whole->document_counts()->documents : whole->samples();
  const Selection selection(all, spec.held_out, spec.kept, key_of(*whole, spec.seed));
  if (selection.size(part) == 0) return nothing_left(*whole, spec, part);
  std::string fingerprint = fingerprint_of(*whole, spec, part);
  if (!has_documents(*whole))
    return std::unique_ptr<Dataset>(
        std::make_unique<SelectedDataset>(whole, selection, part, std::move(fingerprint)));
  std::vector<bool> chosen(all);
  for (uint64_t i = 0; i < selection.size(part); ++i) chosen[selection.at(part, i)] = true;
  return whole->of_documents(chosen, std::move(fingerprint));
}

}  // namespace

Result<std::unique_ptr<Dataset>> select_kept(std::unique_ptr<Dataset> whole,
                                             const SelectionSpec& spec) {
  if (spec.takes_all()) return whole;
  return select(std::move(whole), spec, Part::kKept);
}

Result<TwoParts> split(std::unique_ptr<Dataset> whole, const SelectionSpec& spec) {
  const std::shared_ptr<const Dataset> shared = std::move(whole);
  TwoParts parts;
  LOCKSTEP_ASSIGN_OR_RETURN(parts.held_out, select(shared, spec, Part::kHeldOut));
  LOCKSTEP_ASSIGN_OR_RETURN(parts.kept, select(shared, spec, Part::kKept));
  return parts;
}

}  // namespace lockstep::data
