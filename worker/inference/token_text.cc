#include "worker/inference/token_text.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "comm/base/text/shell_word.h"
#include "comm/base/text/utf8.h"
#include "data/bpe/encoder.h"

namespace lockstep {
namespace {

constexpr uint32_t kBytes = 256;
constexpr char kEndOfText[] = "<|endoftext|>";

}  // namespace

Result<TokenText> TokenText::of_vocabulary(const std::string& tokenizer,
                                           const std::string& sha256) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto vocabulary, data::BpeVocabulary::open(tokenizer));
  if (!sha256.empty())
    LOCKSTEP_RETURN_IF_ERROR(data::check_vocabulary_hash(tokenizer, sha256, vocabulary.sha256()));
  TokenText text(Kind::kPieces);
  text.tokenizer_ = tokenizer;
  text.vocabulary_ = std::make_shared<data::BpeVocabulary>(std::move(vocabulary));
  return text;
}

Result<std::vector<int64_t>> TokenText::encode(const std::string& prompt, uint32_t vocab) const {
  std::vector<int64_t> tokens;
  if (kind_ == Kind::kNumbers) {
    LOCKSTEP_ASSIGN_OR_RETURN(tokens, numbers(prompt));
  } else if (kind_ == Kind::kBytes) {
    for (const char byte : prompt) tokens.push_back(static_cast<uint8_t>(byte));
  } else {
    if (const auto at = find_no_utf8(prompt))
      return Status(Code::kUsage, "the prompt is not UTF-8 from byte " + std::to_string(*at) +
                                      " on, and " + shell_word(tokenizer_) +
                                      " encodes UTF-8 only; convert the prompt with iconv");
    std::vector<uint32_t> found;
    data::BpeEncoder(*vocabulary_).encode(prompt, found);
    tokens.assign(found.begin(), found.end());
  }
  if (tokens.empty())
    return Status(Code::kUsage, "the prompt is empty; give a text to go on from with --prompt");
  const int64_t most = *std::max_element(tokens.begin(), tokens.end());
  if (most < int64_t{vocab}) return tokens;
  return Status(Code::kUsage, "the prompt has the token " + std::to_string(most) +
                                  ", but the model has only " + std::to_string(vocab) +
                                  " tokens; use the tokenizer that it was trained with" +
                                  (kind_ == Kind::kBytes ? " (--tokenizer)" : ""));
}

Result<std::vector<int64_t>> TokenText::numbers(const std::string& prompt) {
  std::vector<int64_t> tokens;
  std::istringstream words(prompt);
  for (std::string word; words >> word;) {
    uint32_t token = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), token);
    if (read.ec != std::errc() || read.ptr != word.data() + word.size())
      return Status(Code::kUsage, "the prompt has " + shell_word(word) +
                                      ", but nothing tells which text the tokens of this model "
                                      "are; give token numbers, or name a --tokenizer");
    tokens.push_back(token);
  }
  return tokens;
}

bool TokenText::has(uint32_t token) const {
  if (kind_ == Kind::kPieces) return !vocabulary_->bytes_of(token).empty();
  return kind_ == Kind::kNumbers || token < kBytes;
}

std::optional<uint32_t> TokenText::end() const {
  if (kind_ != Kind::kPieces) return std::nullopt;
  for (uint32_t token = 0; token < vocabulary_->size(); ++token)
    if (vocabulary_->bytes_of(token) == kEndOfText) return token;
  return std::nullopt;
}

std::string TokenText::add(uint32_t token) {
  if (kind_ == Kind::kNumbers) return std::to_string(token) + " ";
  if (kind_ == Kind::kPieces) return characters_.add(vocabulary_->bytes_of(token));
  const char byte = static_cast<char>(token);
  return characters_.add({&byte, 1});
}

}  // namespace lockstep
