// A vocabulary of byte-level BPE that cuts text as GPT-2 does. Lockstep reads these files of users:
//
//   tokenizer.json           of Hugging Face's tokenizers: model BPE, pre_tokenizer ByteLevel
//   vocab.json, merges.txt   as GPT-2 was published with, in one directory; nothing there says
//                            which tokens are special, so no text is special
//   a directory              with either; tokenizer.json goes before the pair
//
// Tokens are byte strings. Every single byte is a token, so any text can be encoded. Lockstep
// refuses by name whatever would encode otherwise than this code (another pattern, a normaliser,
// dropout, prefixes of words). Lockstep adds nothing to text and cuts nothing off (post_processor,
// truncation, padding), as with add_special_tokens=False.
//
// Errors: kNoInput if the vocabulary does not exist; kBadData, naming file and part, if it is
// damaged; kUsage if it is another kind of vocabulary.
//
// Thread-safety: immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

class BpeVocabulary {
 public:
  struct Merge {
    uint32_t rank = 0;  // the lowest rank merges first
    uint32_t token = 0;
  };
  // Text that is always one token, wherever it occurs: "<|endoftext|>".
  struct AddedToken {
    std::string text;
    uint32_t token = 0;
    bool is_normalized = false;  // searched for in the text between the other added tokens
  };

  static Result<BpeVocabulary> open(const std::string& path);

  // The largest token + 1.
  uint32_t size() const { return size_; }
  // SHA-256 of the content of the files, in hex.
  const std::string& sha256() const { return sha256_; }
  // The files it was read from.
  const std::vector<std::string>& files() const { return files_; }

  uint32_t token_of_byte(uint8_t byte) const { return bytes_[byte]; }
  // Null if these two tokens do not merge.
  const Merge* merge_of(uint32_t left, uint32_t right) const {
    const auto found = merges_.find(uint64_t{left} << 32 | right);
    return found == merges_.end() ? nullptr : &found->second;
  }
  const std::vector<AddedToken>& added_tokens() const { return added_; }
  // The bytes that a token stands for, as a decoder writes them; empty for a number that is no
  // token.
  std::string_view bytes_of(uint32_t token) const {
    const auto found = texts_.find(token);
    return found == texts_.end() ? std::string_view() : found->second;
  }

 private:
  friend class VocabularyReader;
  uint32_t size_ = 0;
  std::string sha256_;
  std::vector<std::string> files_;
  uint32_t bytes_[256] = {};
  std::unordered_map<uint64_t, Merge> merges_;
  std::vector<AddedToken> added_;
  std::unordered_map<uint32_t, std::string> texts_;
};

// The same hash as BpeVocabulary::sha256(), without parsing the files.
Result<std::string> vocabulary_sha256(const std::string& path);

// kUsage if the content of `path` is not the one that the run began with. Both hashes are in hex.
Status check_vocabulary_hash(const std::string& path, const std::string& wanted,
                             const std::string& found);

// Parses the content of the files. Messages use `name`. `merges` is empty for a tokenizer.json.
Result<BpeVocabulary> parse_vocabulary(const std::string& name, std::string_view json,
                                       std::string_view merges);

}  // namespace lockstep::data
