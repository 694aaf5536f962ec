// Turns the tokens of a model into text for people, and back: bytes, pieces of a byte-level BPE, or
// numbers if nothing says more.
//
// Errors: kUsage, with what to do.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/bpe/vocabulary.h"
#include "data/bpe/whole_characters.h"

namespace lockstep {

class TokenText {
 public:
  // `tokenizer`: a vocabulary (BpeVocabulary::open()) with this hash in hex, or any if `sha256` is
  // empty. Errors of BpeVocabulary::open() and check_vocabulary_hash().
  static Result<TokenText> of_vocabulary(const std::string& tokenizer, const std::string& sha256);
  static TokenText of_bytes() { return TokenText(Kind::kBytes); }
  static TokenText of_numbers() { return TokenText(Kind::kNumbers); }

  // The tokens of a prompt for a model of `vocab` tokens. kUsage if there are none, or if a token
  // is none of the model's.
  Result<std::vector<int64_t>> encode(const std::string& prompt, uint32_t vocab) const;

  // Whether a text can have this token.
  bool has(uint32_t token) const;
  // The token that ends a text, if there is one.
  std::optional<uint32_t> end() const;

  // The text that is ready with this token more; finish() gives the rest.
  std::string add(uint32_t token);
  std::string finish() { return characters_.finish(); }

 private:
  enum class Kind { kBytes, kPieces, kNumbers };
  explicit TokenText(Kind kind) : kind_(kind) {}
  static Result<std::vector<int64_t>> numbers(const std::string& prompt);

  Kind kind_;
  std::string tokenizer_;
  std::shared_ptr<const data::BpeVocabulary> vocabulary_;
  data::WholeCharacters characters_;
};

}  // namespace lockstep
