#include "data/index/token_dataset.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "data/index/cached_text.h"
#include "data/index/file_errors.h"
#include "data/index/token_stream.h"
#include "data/index/tokenized_text.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kTextVocabulary = 256;

// Of whole numbers without a sign, which a loop makes wide.
template <typename T>
uint64_t largest_in(std::span<const uint8_t> piece) {
  T largest = 0;
  for (uint64_t i = 0; i < piece.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, piece.data() + i, sizeof(T));
    largest = std::max(largest, value);
  }
  return largest;
}

uint64_t largest_of(const TokenStream& stream) {
  uint64_t largest = 0;
  for (size_t i = 0; i < stream.pieces(); ++i) {
    const auto piece = stream.piece(i);
    const uint32_t bytes = stream.token_bytes();
    largest = std::max(largest, bytes == 1   ? largest_in<uint8_t>(piece)
                                : bytes == 2 ? largest_in<uint16_t>(piece)
                                : bytes == 4 ? largest_in<uint32_t>(piece)
                                             : largest_in<uint64_t>(piece));
  }
  return largest;
}

Status beyond(const TokenStream& stream, uint64_t i, uint64_t vocab) {
  const uint32_t unused_bits = 64 - 8 * stream.token_bytes();
  const uint64_t token = stream.token(i);
  // Its sign is the highest bit that is stored.
  const auto as_signed = static_cast<int64_t>(token << unused_bits) >> unused_bits;
  return {Code::kBadData,
          stream.path_of(i) + " has token " +
              (stream.is_signed() ? std::to_string(as_signed) : std::to_string(token)) +
              " at offset " + std::to_string(stream.offset_of(i)) + ", beyond the vocabulary of " +
              std::to_string(vocab) + "; is model.vocab right, and the format of the file?"};
}

// No token is `vocab` or more. REQUIRES that one was.
Status first_beyond(const std::vector<TokenStream>& streams, uint64_t vocab) {
  for (const TokenStream& stream : streams)
    for (uint64_t i = 0; i < stream.tokens(); ++i)
      if (stream.token(i) >= vocab) return beyond(stream, i, vocab);
  return {Code::kBadData,
          streams.front().paths().front() + " changed while it was opened; try again"};
}

// Of all that only say how many bytes a token has the same: they are the same tokens.
std::string shown_format(const std::string& format) {
  return format.starts_with("tokens") ? "tokens" : format;
}

class TokenDataset final : public Dataset {
 public:
  TokenDataset(std::vector<TokenStream> streams, const std::string& format, uint32_t block)
      : streams_(std::move(streams)), format_(shown_format(format)) {
    shape_.tokens = block;
    shape_.token_bytes = streams_.front().token_bytes();
    for (const TokenStream& stream : streams_) {
      first_samples_.push_back(samples_);
      samples_ += (stream.tokens() - 1) / block;
      for (const std::string& path : stream.paths()) files_.push_back(path);
    }
    // Where they lie in Arrow files they are the same tokens, too.
    Xxh3 hash;
    hash.update("lockstep sequences 1\nformat " + (format_ == "arrow_tokens" ? "tokens" : format_) +
                "\nsamples " + std::to_string(samples_) + "\nblock " + std::to_string(block) +
                "\ntoken bytes " + std::to_string(shape_.token_bytes) + "\n");
    for (const TokenStream& stream : streams_) {
      hash.update("tokens " + std::to_string(stream.tokens()) + "\n");
      stream.hash_content(hash);
    }
    fingerprint_ = hash.hex();
  }

  // Copies the sequences that lie in several pieces. kUsage where these are too many.
  Status join() {
    uint64_t bytes = 0;
    for (size_t s = 0; s < streams_.size(); ++s) {
      const uint64_t end = (streams_[s].tokens() - 1) / shape_.tokens;
      for (size_t piece = 1; piece < streams_[s].pieces(); ++piece) {
        // A cut lies within the sequence of the token before it, and in no other.
        const uint64_t i = (streams_[s].first_of_piece(piece) - 1) / shape_.tokens;
        const uint64_t sample = first_samples_[s] + i;
        if (i >= end || (!joined_.empty() && joined_.back().sample == sample)) continue;
        bytes += shape_.stored_bytes();
        if (bytes > limits::kJoinedTokenBytes)
          return {Code::kUsage, files_[0] +
                                    " has so few tokens in a batch that most sequences of "
                                    "model.block " +
                                    std::to_string(shape_.tokens) +
                                    " lie in several; write it again: lockstep data pack"};
        joined_.push_back({sample, std::vector<uint8_t>(shape_.stored_bytes())});
        streams_[s].copy(i * shape_.tokens, shape_.tokens + uint64_t{1},
                         joined_.back().tokens.data());
      }
    }
    return Status::ok();
  }

  const std::vector<TokenStream>& streams() const { return streams_; }
  void set_classes(uint32_t classes) { classes_ = classes; }

  uint64_t samples() const override { return samples_; }
  SampleShape shape() const override { return shape_; }
  uint32_t classes() const override { return classes_; }
  const std::string& format() const override { return format_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const std::vector<ChannelStatistics>& statistics() const override { return statistics_; }
  const std::vector<std::string>& files() const override { return files_; }

  const uint8_t* sample(uint64_t i) const override {
    const size_t s = stream_of(i);
    if (const uint8_t* whole = streams_[s].contiguous(first_token(s, i), stored_tokens()))
      return whole;
    const auto joined =
        std::lower_bound(joined_.begin(), joined_.end(), i,
                         [](const Joined& j, uint64_t sample) { return j.sample < sample; });
    return joined->tokens.data();
  }
  uint32_t label(uint64_t) const override {
    LOCKSTEP_CHECK(false, "the labels of a sequence are in its sample");
  }
  std::optional<FileExtent> extent(uint64_t i) const override {
    const size_t s = stream_of(i);
    return streams_[s].extent(first_token(s, i), stored_tokens());
  }
  std::string name_of(uint64_t i) const override {
    const size_t s = stream_of(i);
    return streams_[s].place_of(first_token(s, i));
  }
  Status unchanged(std::span<const uint64_t> samples) const override {
    if (streams_.size() == 1 && streams_[0].paths().size() == 1) return streams_[0].unchanged();
    std::vector<bool> seen(streams_.size());
    for (const uint64_t i : samples) {
      const size_t s = stream_of(i);
      // One look at a file of its own; of several the sample's.
      if (streams_[s].paths().size() == 1 && seen[s]) continue;
      seen[s] = true;
      LOCKSTEP_RETURN_IF_ERROR(streams_[s].unchanged(first_token(s, i), stored_tokens()));
    }
    return Status::ok();
  }
  Status unchanged() const {
    for (const TokenStream& stream : streams_) LOCKSTEP_RETURN_IF_ERROR(stream.unchanged());
    return Status::ok();
  }

 private:
  struct Joined {
    uint64_t sample = 0;
    std::vector<uint8_t> tokens;
  };

  size_t stream_of(uint64_t sample) const {
    const auto after = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
    return static_cast<size_t>(after - first_samples_.begin()) - 1;
  }
  uint64_t first_token(size_t stream, uint64_t sample) const {
    return (sample - first_samples_[stream]) * shape_.tokens;
  }
  uint64_t stored_tokens() const { return uint64_t{shape_.tokens} + 1; }

  std::vector<TokenStream> streams_;  // not empty
  std::vector<uint64_t> first_samples_;
  std::vector<Joined> joined_;  // rising
  std::string format_;
  uint32_t classes_ = 0;
  SampleShape shape_;
  uint64_t samples_ = 0;
  std::vector<std::string> files_;
  std::string fingerprint_;
  const std::vector<ChannelStatistics> statistics_;
};

Status check_stream(const TokenStream& stream, const TokenStream& first, uint32_t block) {
  const std::string& path = stream.paths().front();
  if (stream.tokens() <= block)
    return {Code::kBadData, path + " has " + std::to_string(stream.tokens()) +
                                " tokens; a sequence of model.block " + std::to_string(block) +
                                " and its last label need " + std::to_string(uint64_t{block} + 1)};
  if (stream.token_bytes() == first.token_bytes()) return Status::ok();
  return {Code::kBadData, first.paths().front() + " has " + std::to_string(first.token_bytes()) +
                              " bytes a token, " + path + " has " +
                              std::to_string(stream.token_bytes()) +
                              "; they do not belong together"};
}

std::string largest_text(const std::string& fingerprint, uint64_t largest) {
  return "lockstep tokens 1\nfingerprint " + fingerprint + "\nlargest " + std::to_string(largest) +
         "\n";
}

// Nothing where `text` is not what largest_text() writes for this fingerprint.
std::optional<uint64_t> parse_largest(const std::string& text, const std::string& fingerprint) {
  const size_t last = text.rfind(' ');
  if (last == std::string::npos) return std::nullopt;
  const uint64_t largest = std::strtoull(text.c_str() + last, nullptr, 10);
  if (largest_text(fingerprint, largest) != text) return std::nullopt;
  return largest;
}

// Of all tokens: every one is read, unless the number was stored when they were.
Result<uint64_t> largest_token(const TokenDataset& dataset, const std::string& cache_dir,
                               const ProgressFn& progress) {
  const std::string name = "tokens-" + dataset.fingerprint() + ".txt";
  if (const auto text = cached_text(cache_dir, name))
    if (const auto stored = parse_largest(*text, dataset.fingerprint())) return *stored;
  uint64_t largest = 0;
  for (const TokenStream& stream : dataset.streams()) {
    if (progress) progress("checking " + stream.paths().front(), 0, stream.bytes());
    largest = std::max(largest, largest_of(stream));
  }
  LOCKSTEP_RETURN_IF_ERROR(dataset.unchanged());
  keep_text(cache_dir, name, largest_text(dataset.fingerprint(), largest));
  return largest;
}

// The number of different tokens: what was asked for, if no token is beyond it.
Result<uint32_t> vocabulary(const TokenDataset& dataset, uint32_t asked,
                            const std::string& cache_dir, const ProgressFn& progress) {
  const bool is_bytes = dataset.shape().token_bytes == 1;  // of text
  if (is_bytes && asked == 0) return kTextVocabulary;
  const uint64_t limit = asked == 0 ? limits::kVocabulary : asked;
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t largest, largest_token(dataset, cache_dir, progress));
  if (largest >= limit) return first_beyond(dataset.streams(), limit);
  return asked > 0 ? asked : static_cast<uint32_t>(largest + 1);
}

// No token of these is beyond the vocabulary, and what is kept has a checksum.
Result<uint32_t> vocabulary_of(const BpeVocabulary& bpe, const SampleCut& cut) {
  if (cut.vocab == 0) return bpe.size();
  if (cut.vocab >= bpe.size()) return cut.vocab;
  return Status(Code::kUsage, "model.vocab is " + std::to_string(cut.vocab) + ", but " +
                                  cut.tokenizer + " has " + std::to_string(bpe.size()) +
                                  " tokens; take that or more, or leave the key out");
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_token_dataset(const std::vector<std::string>& paths,
                                                    const std::string& format, const SampleCut& cut,
                                                    const std::string& cache_dir,
                                                    const ProgressFn& progress) {
  if (cut.block == 0 || cut.block > limits::kSequenceTokens)
    return Status(Code::kUsage, paths.front() +
                                    " holds tokens, which are cut into sequences of "
                                    "model.block; that is " +
                                    std::to_string(cut.block) + " but must be 1 to " +
                                    std::to_string(limits::kSequenceTokens));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bpe, open_vocabulary(cut));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<TokenStream> streams,
                            open_token_streams(paths, format, bpe.get(), cache_dir, progress));
  for (const TokenStream& stream : streams) {
    LOCKSTEP_RETURN_IF_ERROR(check_stream(stream, streams.front(), cut.block));
    stream.will_need();
  }
  auto dataset = std::make_unique<TokenDataset>(std::move(streams), format, cut.block);
  LOCKSTEP_RETURN_IF_ERROR(dataset->join());
  LOCKSTEP_RETURN_IF_ERROR(dataset->unchanged());  // since it was looked at for its fingerprint
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t classes,
                            bpe != nullptr ? vocabulary_of(*bpe, cut)
                                           : vocabulary(*dataset, cut.vocab, cache_dir, progress));
  dataset->set_classes(classes);
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace lockstep::data
