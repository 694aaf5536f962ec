#include "data/index/document_dataset.h"

#include <algorithm>
#include <span>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/base/labels.h"
#include "data/index/best_fit.h"
#include "data/index/documents.h"
#include "data/index/token_files.h"
#include "data/index/token_vocabulary.h"

namespace lockstep::data {
namespace {

// Of the tokens, however documents are made of them.
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

// Where documents begin and end is in it, wherever that was said.
std::string documents_fingerprint(const std::string& content, const std::string& format,
                                  const DocumentPieces& pieces, const SampleCut& cut) {
  const bool is_pack = cut.documents == Documents::kPack;
  Xxh3 hash;
  hash.update("lockstep documents 1\nformat " + (format == "arrow_tokens" ? "tokens" : format) +
              "\ncontent " + content + "\nblock " + std::to_string(cut.block) + "\n" +
              (is_pack ? "pack " + std::to_string(kBestFitVersion) : std::string("pad")) +
              (cut.by_length && !is_pack ? " by length" : "") + "\npieces " +
              std::to_string(pieces.begins.size()) + "\n");
  hash.update(pieces.begins.data(), pieces.begins.size() * sizeof pieces.begins[0]);
  hash.update(pieces.lengths.data(), pieces.lengths.size() * sizeof pieces.lengths[0]);
  return hash.hex();
}

class DocumentDataset final : public Dataset {
 public:
  DocumentDataset(std::vector<TokenStream> streams, const std::string& format,
                  DocumentPieces pieces, const SampleCut& cut)
      : streams_(std::move(streams)),
        format_(shown_token_format(format)),
        begins_(std::move(pieces.begins)),
        lengths_(std::move(pieces.lengths)) {
    shape_.tokens = cut.block;
    shape_.token_bytes = streams_.front().token_bytes();
    shape_.has_positions = cut.documents == Documents::kPack;
    shape_.is_padded = cut.documents == Documents::kPad;
    uint64_t first = 0;
    for (const TokenStream& stream : streams_) {
      first_tokens_.push_back(first);
      first += stream.tokens();
      for (const std::string& path : stream.paths()) files_.push_back(path);
    }
    if (shape_.has_positions)
      pack();
    else if (cut.by_length)
      order_ = by_length(lengths_, cut.block);
    counts_ = {pieces.documents, pieces.too_short, begins_.size(), 0};
    for (const uint32_t length : lengths_) counts_.predictions += length;
  }

  void set(std::string fingerprint, uint32_t classes) {
    fingerprint_ = std::move(fingerprint);
    classes_ = classes;
  }
  const std::vector<TokenStream>& streams() const { return streams_; }

  uint64_t samples() const override {
    return shape_.has_positions ? packs_.size() : begins_.size();
  }
  SampleShape shape() const override { return shape_; }
  uint32_t classes() const override { return classes_; }
  const std::string& format() const override { return format_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const std::vector<ChannelStatistics>& statistics() const override { return statistics_; }
  const std::vector<std::string>& files() const override { return files_; }
  const DocumentCounts* document_counts() const override { return &counts_; }

  const uint8_t* sample(uint64_t) const override { return nullptr; }
  uint32_t label(uint64_t) const override {
    LOCKSTEP_CHECK(false, "the labels of a sequence are in its sample");
  }
  bool makes_sequences() const override { return true; }
  uint64_t counted_labels(uint64_t i) const override {
    return shape_.has_positions ? filled_[i] : lengths_[piece_of(i)];
  }

  int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const override {
    int64_t* const positions = shape_.has_positions ? input + shape_.tokens : nullptr;
    uint32_t at = 0;
    int64_t largest = 0;
    const auto add = [&](uint32_t piece) {
      largest = std::max(largest, read(piece, input + at, labels + at));
      for (uint32_t k = 0; positions != nullptr && k < lengths_[piece]; ++k) positions[at + k] = k;
      at += lengths_[piece];
    };
    if (positions == nullptr)
      add(piece_of(i));
    else
      for (const uint32_t piece : packs_.of(i)) add(piece);
    std::fill(input + at, input + shape_.tokens, 0);
    std::fill(labels + at, labels + shape_.tokens, kIgnoredLabel);
    if (positions != nullptr) std::fill(positions + at, positions + shape_.tokens, 0);
    return largest;
  }

  std::string name_of(uint64_t i) const override {
    const uint64_t begin = begins_[shape_.has_positions ? packs_.of(i).front() : piece_of(i)];
    const size_t s = stream_of(begin);
    return streams_[s].place_of(begin - first_tokens_[s]);
  }

  Status unchanged(std::span<const uint64_t> samples) const override {
    if (streams_.size() == 1 && streams_[0].paths().size() == 1) return streams_[0].unchanged();
    std::vector<bool> seen(streams_.size());
    const auto look_at = [&](uint32_t piece) {
      const size_t s = stream_of(begins_[piece]);
      // One look at a file of its own; of several the piece's.
      if (streams_[s].paths().size() == 1 && seen[s]) return Status::ok();
      seen[s] = true;
      return streams_[s].unchanged(begins_[piece] - first_tokens_[s],
                                   uint64_t{lengths_[piece]} + 1);
    };
    for (const uint64_t i : samples) {
      if (!shape_.has_positions) {
        LOCKSTEP_RETURN_IF_ERROR(look_at(piece_of(i)));
        continue;
      }
      for (const uint32_t piece : packs_.of(i)) LOCKSTEP_RETURN_IF_ERROR(look_at(piece));
    }
    return Status::ok();
  }

 private:
  void pack() {
    packs_ = best_fit(lengths_, shape_.tokens);
    filled_.resize(packs_.size());
    for (uint64_t i = 0; i < packs_.size(); ++i)
      for (const uint32_t piece : packs_.of(i)) filled_[i] += lengths_[piece];
  }

  // REQUIRES: no packs.
  uint32_t piece_of(uint64_t sample) const {
    return order_.empty() ? static_cast<uint32_t>(sample) : order_[sample];
  }
  size_t stream_of(uint64_t token) const {
    const auto after = std::upper_bound(first_tokens_.begin(), first_tokens_.end(), token);
    return static_cast<size_t>(after - first_tokens_.begin()) - 1;
  }
  // Its tokens, and those behind each.
  int64_t read(uint32_t piece, int64_t* input, int64_t* labels) const {
    const size_t s = stream_of(begins_[piece]);
    const uint64_t begin = begins_[piece] - first_tokens_[s];
    const uint32_t length = lengths_[piece];
    const int64_t largest = streams_[s].read(begin, length, input);
    std::copy(input + 1, input + length, labels);
    return std::max(largest, streams_[s].read(begin + length, 1, labels + length - 1));
  }

  std::vector<TokenStream> streams_;    // not empty
  std::vector<uint64_t> first_tokens_;  // of each
  std::string format_;
  uint32_t classes_ = 0;
  SampleShape shape_;
  std::vector<std::string> files_;
  std::string fingerprint_;
  const std::vector<ChannelStatistics> statistics_;
  DocumentCounts counts_;

  // documents.h
  std::vector<uint64_t> begins_;
  std::vector<uint32_t> lengths_;
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
  std::string fingerprint = documents_fingerprint(content, shown_token_format(format), pieces, cut);
  auto dataset =
      std::make_unique<DocumentDataset>(std::move(streams), format, std::move(pieces), cut);
  // Since they were looked at for all of this.
  for (const TokenStream& stream : dataset->streams()) LOCKSTEP_RETURN_IF_ERROR(stream.unchanged());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const uint32_t classes,
      token_vocabulary(dataset->streams(), content, cut, bpe, cache_dir, progress));
  dataset->set(std::move(fingerprint), classes);
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace lockstep::data
