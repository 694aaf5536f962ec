// A vocabulary of byte-level BPE with GPT-2's way to cut text, from the files that users have:
//
//   tokenizer.json           of Hugging Face's tokenizers: model BPE, pre_tokenizer ByteLevel
//   vocab.json, merges.txt   as GPT-2 was published with, in one directory; nothing says there
//                            which tokens are special, so text is never one
//   a directory              with either, tokenizer.json before the pair
//
// Its tokens are byte strings; every single byte is one, so that any text can be encoded. Whatever
// would encode otherwise than here (another pattern, a normaliser, dropout, prefixes of words) is
// refused by its name; but nothing is added to text or cut off (post_processor, truncation,
// padding), as with add_special_tokens=False.
//
// Errors: kNoInput when it is not there; kBadData, naming file and part, when it is damaged; kUsage
// when it is another kind of vocabulary.
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
    uint32_t rank = 0;  // the lowest comes first
    uint32_t token = 0;
  };
  // Text that is one token wherever it stands: "<|endoftext|>".
  struct AddedToken {
    std::string text;
    uint32_t token = 0;
    bool is_normalized = false;  // looked for in what the others leave
  };

  static Result<BpeVocabulary> open(const std::string& path);

  // The largest token + 1.
  uint32_t size() const { return size_; }
  // Of the files' content, in hex.
  const std::string& sha256() const { return sha256_; }
  // Those that it was read from.
  const std::vector<std::string>& files() const { return files_; }

  uint32_t token_of_byte(uint8_t byte) const { return bytes_[byte]; }
  // Null where these two do not become one.
  const Merge* merge_of(uint32_t left, uint32_t right) const {
    const auto found = merges_.find(uint64_t{left} << 32 | right);
    return found == merges_.end() ? nullptr : &found->second;
  }
  const std::vector<AddedToken>& added_tokens() const { return added_; }

 private:
  friend class VocabularyReader;
  uint32_t size_ = 0;
  std::string sha256_;
  std::vector<std::string> files_;
  uint32_t bytes_[256] = {};
  std::unordered_map<uint64_t, Merge> merges_;
  std::vector<AddedToken> added_;
};

// As BpeVocabulary::sha256(), without understanding the files.
Result<std::string> vocabulary_sha256(const std::string& path);

// kUsage where `path` has not the content that the run was begun with; both in hex.
Status check_vocabulary_hash(const std::string& path, const std::string& wanted,
                             const std::string& found);

// From the content of the files, which messages call `name`. `merges` is empty of a tokenizer.json.
Result<BpeVocabulary> parse_vocabulary(const std::string& name, std::string_view json,
                                       std::string_view merges);

}  // namespace lockstep::data
