#include "data/formats/tokens/token_dataset.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "data/formats/tokens/document_dataset.h"
#include "data/formats/tokens/open_tokens.h"
#include "data/formats/tokens/token_format.h"
#include "data/formats/tokens/token_stream.h"
#include "data/formats/tokens/token_vocabulary.h"
#include "data/formats/tokens/tokenized_text.h"

namespace lockstep::data {
namespace {

class TokenBlocks final : public StoredSamples {
 public:
  TokenBlocks(std::vector<TokenStream> streams, uint32_t block) : streams_(std::move(streams)) {
    shape_.tokens = block;
    shape_.token_bytes = streams_.front().token_bytes();
    for (const TokenStream& stream : streams_) {
      first_samples_.push_back(samples_);
      samples_ += (stream.tokens() - 1) / block;
    }
  }

  // All but the number of classes.
  DatasetFacts facts(const std::string& format) const {
    const TokenFormat& row = token_format(format);
    DatasetFacts facts{.samples = samples_, .shape = shape_, .format = std::string(row.shown)};
    Xxh3 hash;
    hash.update("lockstep sequences 1\nformat " + std::string(row.hashed) + "\nsamples " +
                std::to_string(samples_) + "\nblock " + std::to_string(shape_.tokens) +
                "\ntoken bytes " + std::to_string(shape_.token_bytes) + "\n");
    for (const TokenStream& stream : streams_) {
      for (const std::string& path : stream.paths()) facts.files.push_back(path);
      hash.update("tokens " + std::to_string(stream.tokens()) + "\n");
      stream.hash_content(hash);
    }
    facts.fingerprint = hash.hex();
    facts.notes.columns.input = streams_.front().column();
    return facts;
  }

  // Copies the sequences that lie in several pieces. kUsage if there are too many.
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
          return {Code::kUsage,
                  streams_[0].paths()[0] +
                      " has batches of so few tokens that most sequences of model.block " +
                      std::to_string(shape_.tokens) +
                      " lie in several batches; write the file again with lockstep data pack"};
        joined_.push_back({sample, std::vector<uint8_t>(shape_.stored_bytes())});
        streams_[s].copy(i * shape_.tokens, shape_.tokens + uint64_t{1},
                         joined_.back().tokens.data());
      }
    }
    return Status::ok();
  }

  const std::vector<TokenStream>& streams() const { return streams_; }

  const uint8_t* sample(uint64_t i) const override {
    const size_t s = stream_of(i);
    if (const uint8_t* whole = streams_[s].contiguous(first_token(s, i), stored_tokens()))
      return whole;
    const auto joined =
        std::lower_bound(joined_.begin(), joined_.end(), i,
                         [](const Joined& j, uint64_t sample) { return j.sample < sample; });
    return joined->tokens.data();
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
      // A stream of one file needs one look; in a stream of several, each sample's files do.
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
  SampleShape shape_;
  uint64_t samples_ = 0;
};

Status check_stream(const TokenStream& stream, uint32_t block) {
  const std::string& path = stream.paths().front();
  if (stream.tokens() > block) return Status::ok();
  return {Code::kBadData, path + " has " + std::to_string(stream.tokens()) +
                              " tokens; a sequence of model.block " + std::to_string(block) +
                              " and its last label need " + std::to_string(uint64_t{block} + 1)};
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_token_dataset(const std::vector<std::string>& paths,
                                                    const std::string& format, const SampleCut& cut,
                                                    const std::string& cache_dir,
                                                    const ProgressFn& progress) {
  if (cut.block == 0 || cut.block > limits::kSequenceTokens)
    return Status(
        Code::kUsage,
        paths.front() +
            " holds tokens, which Lockstep cuts into sequences of model.block; the key is " +
            std::to_string(cut.block) + " but must be 1 to " +
            std::to_string(limits::kSequenceTokens));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bpe, open_vocabulary(cut));
  const bool is_stream = cut.documents == Documents::kStream;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<TokenStream> streams,
      open_token_streams(paths, format, cut.columns, bpe.get(), cache_dir, progress, !is_stream));
  for (const TokenStream& stream : streams) {
    if (is_stream) LOCKSTEP_RETURN_IF_ERROR(check_stream(stream, cut.block));
    LOCKSTEP_RETURN_IF_ERROR(check_alike(stream, streams.front()));
    stream.will_need();
  }
  if (!is_stream)
    return open_document_dataset(std::move(streams), format, cut, bpe.get(), cache_dir, progress);
  const auto blocks = std::make_shared<TokenBlocks>(std::move(streams), cut.block);
  DatasetFacts facts = blocks->facts(format);
  LOCKSTEP_RETURN_IF_ERROR(blocks->join());
  LOCKSTEP_RETURN_IF_ERROR(blocks->unchanged());  // since it was looked at for its fingerprint
  LOCKSTEP_ASSIGN_OR_RETURN(facts.classes, token_vocabulary(blocks->streams(), facts.fingerprint,
                                                            cut, bpe.get(), cache_dir, progress));
  return std::make_unique<Dataset>(std::move(facts), blocks);
}

}  // namespace lockstep::data
