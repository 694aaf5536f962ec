#include "data/formats/tokens/token_vocabulary.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "comm/base/limits.h"
#include "data/files/cached_text.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kTextVocabulary = 256;

// A loop over unsigned integers of the stored width, which compilers vectorise.
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
              std::to_string(vocab) + "; check model.vocab and the format of the file"};
}

// The error for the first token of `vocab` or more. REQUIRES: there was one.
Status first_beyond(const std::vector<TokenStream>& streams, uint64_t vocab) {
  for (const TokenStream& stream : streams)
    for (uint64_t i = 0; i < stream.tokens(); ++i)
      if (stream.token(i) >= vocab) return beyond(stream, i, vocab);
  return {Code::kBadData,
          streams.front().paths().front() + " changed while it was opened; try again"};
}

std::string largest_text(const std::string& fingerprint, uint64_t largest) {
  return "lockstep tokens 1\nfingerprint " + fingerprint + "\nlargest " + std::to_string(largest) +
         "\n";
}

// Nothing if `text` is not what largest_text() writes for this fingerprint.
std::optional<uint64_t> parse_largest(const std::string& text, const std::string& fingerprint) {
  const size_t last = text.rfind(' ');
  if (last == std::string::npos) return std::nullopt;
  const uint64_t largest = std::strtoull(text.c_str() + last, nullptr, 10);
  if (largest_text(fingerprint, largest) != text) return std::nullopt;
  return largest;
}

// Reads every token, unless an earlier call stored the number.
Result<uint64_t> largest_token(const std::vector<TokenStream>& streams, const std::string& key,
                               const std::string& cache_dir, const ProgressFn& progress) {
  const std::string name = "tokens-" + key + ".txt";
  if (const auto text = cached_text(cache_dir, name))
    if (const auto stored = parse_largest(*text, key)) return *stored;
  uint64_t largest = 0;
  for (const TokenStream& stream : streams) {
    if (progress) progress("checking " + stream.paths().front(), 0, stream.bytes());
    largest = std::max(largest, largest_of(stream));
  }
  for (const TokenStream& stream : streams) LOCKSTEP_RETURN_IF_ERROR(stream.unchanged());
  keep_text(cache_dir, name, largest_text(key, largest));
  return largest;
}

// The number of different tokens: `asked`, if it is set and no token is beyond it.
Result<uint32_t> counted_vocabulary(const std::vector<TokenStream>& streams, const std::string& key,
                                    uint32_t asked, const std::string& cache_dir,
                                    const ProgressFn& progress) {
  const bool is_bytes = streams.front().token_bytes() == 1;  // of text
  if (is_bytes && asked == 0) return kTextVocabulary;
  const uint64_t limit = asked == 0 ? limits::kVocabulary : asked;
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t largest,
                            largest_token(streams, key, cache_dir, progress));
  if (largest >= limit) return first_beyond(streams, limit);
  return asked > 0 ? asked : static_cast<uint32_t>(largest + 1);
}

// Needs no look at the tokens: the tokenizer makes none beyond its vocabulary, and a checksum
// covers the kept ones.
Result<uint32_t> vocabulary_of(const BpeVocabulary& bpe, const SampleCut& cut) {
  if (cut.vocab == 0) return bpe.size();
  if (cut.vocab >= bpe.size()) return cut.vocab;
  return Status(Code::kUsage, "model.vocab is " + std::to_string(cut.vocab) + ", but " +
                                  cut.tokenizer + " has " + std::to_string(bpe.size()) +
                                  " tokens; set at least as many, or leave the key out");
}

}  // namespace

Status check_alike(const TokenStream& stream, const TokenStream& first) {
  if (stream.token_bytes() == first.token_bytes()) return Status::ok();
  return {Code::kBadData, first.paths().front() + " has " + std::to_string(first.token_bytes()) +
                              " bytes a token, " + stream.paths().front() + " has " +
                              std::to_string(stream.token_bytes()) +
                              "; they do not belong together"};
}

Result<uint32_t> token_vocabulary(const std::vector<TokenStream>& streams, const std::string& key,
                                  const SampleCut& cut, const BpeVocabulary* bpe,
                                  const std::string& cache_dir, const ProgressFn& progress) {
  if (bpe != nullptr) return vocabulary_of(*bpe, cut);
  return counted_vocabulary(streams, key, cut.vocab, cache_dir, progress);
}

}  // namespace lockstep::data
