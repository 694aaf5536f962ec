#include "data/formats/tokens/document_dataset.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/base/labels.h"
#include "data/formats/tokens/best_fit.h"
#include "data/formats/tokens/documents.h"
#include "data/formats/tokens/stored_documents.h"
#include "data/formats/tokens/token_format.h"
#include "data/formats/tokens/token_vocabulary.h"

namespace lockstep::data {
namespace {

// Hashes the tokens, however documents are made of them.
std::string content_key(const std::vector<TokenStream>& streams) {
  Xxh3 hash;
  hash.update("lockstep token content 1\ntoken bytes " +
              std::to_string(streams.front().token_bytes()) + "\n");
  for (const TokenStream& stream : streams) {
    hash.update("tokens " + std::to_string(stream.tokens()) + "\n");
    stream.hash_content(hash);
  }
  return hash.hex();
}

// Properties that all parts of a data set share.
struct DocumentForm {
  const TokenFormat* format = nullptr;
  std::string content;
  uint32_t block = 0;
  bool is_packed = false;
  bool by_length = false;
  uint32_t classes = 0;
};

// Covers where documents begin and end, whatever states it.
std::string documents_fingerprint(const DocumentForm& form, const DocumentPieces& pieces) {
  Xxh3 hash;
  hash.update("lockstep documents 1\nformat " + std::string(form.format->hashed) + "\ncontent " +
              form.content + "\nblock " + std::to_string(form.block) + "\n" +
              (form.is_packed ? "pack " + std::to_string(kBestFitVersion) : std::string("pad")) +
              (form.by_length && !form.is_packed ? " by length" : "") + "\npieces " +
              std::to_string(pieces.begins.size()) + "\n");
  hash.update(pieces.begins.data(), pieces.begins.size() * sizeof pieces.begins[0]);
  hash.update(pieces.lengths.data(), pieces.lengths.size() * sizeof pieces.lengths[0]);
  return hash.hex();
}

SampleShape sequence_shape(const DocumentForm& form, uint32_t token_bytes) {
  SampleShape shape;
  shape.tokens = form.block;
  shape.token_bytes = token_bytes;
  shape.has_positions = form.is_packed;
  shape.is_padded = !form.is_packed;
  return shape;
}

class DocumentSequences final : public Sequences, public WholeDocuments {
 public:
  // Takes all documents, or the pieces in `part`, in rising order.
  DocumentSequences(std::shared_ptr<const StoredDocuments> stored, DocumentForm form,
                    std::optional<std::vector<uint32_t>> part)
      : stored_(std::move(stored)), form_(std::move(form)), is_part_(part.has_value()) {
    const DocumentPieces& all = stored_->pieces();
    if (!is_part_) {
      counts_ = {all.documents, all.too_short, all.begins.size(), 0};
      arrange(all.lengths);
      return;
    }
    counts_ = {stored_->documents_of(*part), 0, part->size(), 0};
    std::vector<uint32_t> lengths;
    lengths.reserve(part->size());
    for (const uint32_t piece : *part) lengths.push_back(all.lengths[piece]);
    arrange(lengths);
    std::vector<uint32_t>& numbers = form_.is_packed ? packs_.pieces : order_;
    if (numbers.empty())
      numbers = std::move(*part);
    else
      for (uint32_t& number : numbers) number = (*part)[number];
  }

  static std::unique_ptr<Dataset> dataset(std::shared_ptr<const StoredDocuments> stored,
                                          const DocumentForm& form, std::string fingerprint,
                                          std::optional<std::vector<uint32_t>> part) {
    DatasetFacts facts{.shape = sequence_shape(form, stored->streams().front().token_bytes()),
                       .classes = form.classes,
                       .format = std::string(form.format->shown),
                       .fingerprint = std::move(fingerprint),
                       .files = stored->files(),
                       .notes = {.columns = {.input = stored->streams().front().column()}}};
    const auto sequences =
        std::make_shared<const DocumentSequences>(std::move(stored), form, std::move(part));
    facts.samples = form.is_packed ? sequences->packs_.size() : sequences->counts_.pieces;
    facts.documents = sequences;
    return std::make_unique<Dataset>(std::move(facts), sequences);
  }

  const DocumentCounts& counts() const override { return counts_; }
  const std::string& content() const override { return form_.content; }
  std::unique_ptr<Dataset> part(const std::vector<bool>& chosen,
                                std::string fingerprint) const override {
    LOCKSTEP_CHECK(!is_part_, "documents are numbered in the whole");
    return dataset(stored_, form_, std::move(fingerprint), stored_->pieces_of(chosen));
  }

  uint64_t counted_labels(uint64_t i) const override {
    return form_.is_packed ? filled_[i] : length_of(piece_of(i));
  }

  int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const override {
    int64_t* const positions = form_.is_packed ? input + form_.block : nullptr;
    uint32_t at = 0;
    int64_t largest = 0;
    const auto add = [&](uint32_t piece) {
      const uint32_t length = length_of(piece);
      largest = std::max(largest, stored_->read(piece, input + at, labels + at));
      for (uint32_t k = 0; positions != nullptr && k < length; ++k) positions[at + k] = k;
      at += length;
    };
    if (positions == nullptr)
      add(piece_of(i));
    else
      for (const uint32_t piece : packs_.of(i)) add(piece);
    std::fill(input + at, input + form_.block, 0);
    std::fill(labels + at, labels + form_.block, kIgnoredLabel);
    if (positions != nullptr) std::fill(positions + at, positions + form_.block, 0);
    return largest;
  }

  std::string name_of(uint64_t i) const override {
    return stored_->place_of(form_.is_packed ? packs_.of(i).front() : piece_of(i));
  }

  Status unchanged(std::span<const uint64_t> samples) const override {
    std::vector<uint32_t> pieces;
    for (const uint64_t i : samples) {
      if (!form_.is_packed) {
        pieces.push_back(piece_of(i));
        continue;
      }
      const auto pack = packs_.of(i);
      pieces.insert(pieces.end(), pack.begin(), pack.end());
    }
    return stored_->unchanged(pieces);
  }

 private:
  // Orders or packs pieces of these lengths, by their indices in `lengths`.
  void arrange(const std::vector<uint32_t>& lengths) {
    for (const uint32_t length : lengths) counts_.predictions += length;
    if (!form_.is_packed) {
      if (form_.by_length) order_ = data::by_length(lengths, form_.block);
      return;
    }
    packs_ = best_fit(lengths, form_.block);
    filled_.resize(packs_.size());
    for (uint64_t i = 0; i < packs_.size(); ++i)
      for (const uint32_t place : packs_.of(i)) filled_[i] += lengths[place];
  }

  uint32_t length_of(uint32_t piece) const { return stored_->pieces().lengths[piece]; }
  // REQUIRES: no packs.
  uint32_t piece_of(uint64_t sample) const {
    return order_.empty() ? static_cast<uint32_t>(sample) : order_[sample];
  }

  const std::shared_ptr<const StoredDocuments> stored_;
  const DocumentForm form_;
  const bool is_part_;
  DocumentCounts counts_;

  std::vector<uint32_t> order_;   // pieces by sample; empty: as they are
  Packs packs_;                   // with positions
  std::vector<uint32_t> filled_;  // predictions of each
};

}  // namespace

Result<std::unique_ptr<Dataset>> open_document_dataset(
    std::vector<TokenStream> streams, const std::string& format, const SampleCut& cut,
    const BpeVocabulary* bpe, const std::string& cache_dir, const ProgressFn& progress) {
  const std::string content = content_key(streams);
  LOCKSTEP_ASSIGN_OR_RETURN(
      DocumentPieces pieces,
      cut_documents(streams, cut.block, cut.document_end, content, cache_dir, progress));
  for (TokenStream& stream : streams) stream.forget_documents();
  const auto stored =
      std::make_shared<const StoredDocuments>(std::move(streams), std::move(pieces));
  // Checks that the files have not changed since the calls above read them.
  for (const TokenStream& stream : stored->streams()) LOCKSTEP_RETURN_IF_ERROR(stream.unchanged());
  DocumentForm form{&token_format(format), content, cut.block, cut.documents == Documents::kPack,
                    cut.by_length};
  LOCKSTEP_ASSIGN_OR_RETURN(
      form.classes, token_vocabulary(stored->streams(), content, cut, bpe, cache_dir, progress));
  std::string fingerprint = documents_fingerprint(form, stored->pieces());
  return DocumentSequences::dataset(stored, form, std::move(fingerprint), std::nullopt);
}

}  // namespace lockstep::data
