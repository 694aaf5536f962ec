// Text to tokens by a vocabulary of byte-level BPE.
//
//     text ──▶ added tokens, and what is between them ──▶ pieces (pre_tokens.h) ──▶ bytes, of which
//     the pair with the lowest rank becomes one token, the leftmost first, until none is left
//
// A piece of n bytes takes O(n log n), however hostile. What frequent pieces become is remembered.
//
// Thread-safety: one thread; the vocabulary may be shared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/bpe/vocabulary.h"

namespace lockstep::data {

class BpeEncoder {
 public:
  // `vocabulary` outlives it.
  explicit BpeEncoder(const BpeVocabulary& vocabulary);

  // Appends the tokens of `text`. REQUIRES: valid UTF-8, less than 4 GiB.
  void encode(std::string_view text, std::vector<uint32_t>& out);

 private:
  using Added = std::vector<const BpeVocabulary::AddedToken*>;
  struct Symbol {
    uint32_t token = 0;
    uint32_t previous = 0;  // places; kNone at the ends
    uint32_t next = 0;
    bool is_gone = false;
  };

  void encode_between(std::string_view text, size_t kind, std::vector<uint32_t>& out);
  void encode_plain(std::string_view text, std::vector<uint32_t>& out);
  void encode_piece(std::string_view piece, std::vector<uint32_t>& out);
  void merge(std::string_view piece, std::vector<uint32_t>& out);
  const BpeVocabulary::AddedToken* added_at(std::string_view text, size_t kind) const;

  const BpeVocabulary& vocabulary_;
  // By kind, the normalized ones second, and by first byte; of each the longest first.
  std::vector<Added> added_[2];
  std::unordered_map<std::string, std::vector<uint32_t>> known_;
  std::string key_;
  std::vector<Symbol> symbols_;
};

}  // namespace lockstep::data
