// Encodes text to tokens with a vocabulary of byte-level BPE.
//
//     text ──▶ added tokens, and the text between them ──▶ pieces (pre_tokens.h) ──▶ bytes; the
//     pair with the lowest rank becomes one token, the leftmost first, until no pair is left
//
// A piece of n bytes takes O(n log n), even a hostile one. The encoder remembers the tokens of
// frequent pieces.
//
// Thread-safety: one thread; several encoders may share the vocabulary.
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
    uint32_t previous = 0;  // indices of symbols; kNone at the ends
    uint32_t next = 0;
    bool is_gone = false;
  };

  void encode_between(std::string_view text, size_t kind, std::vector<uint32_t>& out);
  void encode_plain(std::string_view text, std::vector<uint32_t>& out);
  void encode_piece(std::string_view piece, std::vector<uint32_t>& out);
  void merge(std::string_view piece, std::vector<uint32_t>& out);
  const BpeVocabulary::AddedToken* added_at(std::string_view text, size_t kind) const;

  const BpeVocabulary& vocabulary_;
  // By kind (index 1: normalized tokens) and by first byte; the longest token first.
  std::vector<Added> added_[2];
  std::unordered_map<std::string, std::vector<uint32_t>> known_;
  std::string key_;
  std::vector<Symbol> symbols_;
};

}  // namespace lockstep::data
