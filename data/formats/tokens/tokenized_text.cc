#include "data/formats/tokens/tokenized_text.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/text/utf8.h"
#include "comm/run/job/data_formats.h"
#include "data/base/file_errors.h"
#include "data/base/thread_team.h"
#include "data/bpe/encoder.h"
#include "data/bpe/pre_tokens.h"
#include "data/files/inflate_cache.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kMostTokenizeThreads = 16;
constexpr size_t kPartBytes = kMib;             // of a text, on one thread
constexpr size_t kUncutBytes = 16 * kMib;       // without a place to cut
constexpr size_t kPartsOfAThread = 4;           // in hand at once
constexpr uint32_t kNarrowVocabulary = 65'536;  // whose tokens are uint16
constexpr char kVersion[] = "tokens 1 ";        // of kept tokens; Lockstep replaces other versions

bool is_ascii_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Cuts a text where a cut changes no token.
class Cutter {
 public:
  Cutter(std::string_view text, const BpeVocabulary& vocabulary) : text_(text) {
    for (const BpeVocabulary::AddedToken& added : vocabulary.added_tokens())
      if (std::any_of(added.text.begin(), added.text.end(), is_ascii_blank))
        blank_tokens_.push_back(added.text);
  }

  // The end of the part that begins at `begin`. kBadData going on after the file's name.
  Result<size_t> end_of_part(size_t begin) const {
    size_t at = begin + kPartBytes;
    while (at < text_.size() && !may_cut(at)) ++at;
    at = std::min(at, text_.size());
    if (at - begin <= kUncutBytes) return at;
    return bad("goes on for " + std::to_string(kUncutBytes) + " bytes without a blank from byte " +
               std::to_string(begin) + "; if the file is text, cut it into lines");
  }

 private:
  bool may_cut(size_t at) const {
    if (!is_ascii_blank(text_[at])) return false;
    size_t before = at - 1;
    while (is_inside_utf8_character(text_[before])) --before;
    return !is_blank_at(text_, before) && !crosses_token(at);
  }
  bool crosses_token(size_t at) const {
    for (const std::string& token : blank_tokens_)
      for (size_t back = 1; back < token.size() && back <= at; ++back)
        if (text_.substr(at - back).starts_with(token)) return true;
    return false;
  }

  std::string_view text_;  // valid UTF-8
  std::vector<std::string> blank_tokens_;
};

template <typename T>
void store(const std::vector<uint32_t>& tokens, std::vector<uint8_t>& out) {
  for (const uint32_t token : tokens)
    for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<uint8_t>(token >> (8 * i)));
}

// Encodes several parts at a time, and writes their tokens to the sink in order.
Status encode(std::string_view text, const BpeVocabulary& vocabulary, uint32_t token_bytes,
              const ByteSink& sink) {
  const Cutter cutter(text, vocabulary);
  const uint32_t threads = std::clamp(usable_processors(), 1U, kMostTokenizeThreads);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "tokenize"));
  std::vector<BpeEncoder> encoders(team->threads(), BpeEncoder(vocabulary));
  std::vector<std::string_view> parts;
  std::vector<std::vector<uint8_t>> made(kPartsOfAThread * team->threads());
  uint64_t written = 0;
  for (size_t begin = 0; begin < text.size();) {
    parts.clear();
    while (parts.size() < made.size() && begin < text.size()) {
      LOCKSTEP_ASSIGN_OR_RETURN(const size_t end, cutter.end_of_part(begin));
      parts.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    LOCKSTEP_RETURN_IF_ERROR(team->run(parts.size(), [&](uint32_t thread, uint64_t i) {
      std::vector<uint32_t> tokens;
      encoders[thread].encode(parts[i], tokens);
      made[i].clear();
      token_bytes == 2 ? store<uint16_t>(tokens, made[i]) : store<uint32_t>(tokens, made[i]);
      return Status::ok();
    }));
    for (size_t i = 0; i < parts.size(); ++i) written += made[i].size();
    // Extrapolates from the bytes of the text so far.
    const auto expected =
        static_cast<uint64_t>(static_cast<double>(written) * static_cast<double>(text.size()) /
                              static_cast<double>(begin));
    for (size_t i = 0; i < parts.size(); ++i) LOCKSTEP_RETURN_IF_ERROR(sink(made[i], expected));
  }
  return Status::ok();
}

// A merges.txt among the text that it is for would be trained on.
Status check_no_part(const std::string& path, const BpeVocabulary& vocabulary) {
  for (const std::string& file : vocabulary.files()) {
    std::error_code error;
    if (!std::filesystem::equivalent(file, path, error) || error) continue;
    return {Code::kUsage, path + " is a file of data.tokenizer, but lies among the text; put the " +
                              "vocabulary into a directory of its own"};
  }
  return Status::ok();
}

}  // namespace

Result<TokenizedText> open_tokenized(const std::string& path, const BpeVocabulary& vocabulary,
                                     const std::string& cache_dir, const ProgressFn& progress) {
  if (cache_dir.empty())
    return Status(Code::kUsage,
                  "no cache directory to keep the tokens of " + path + "; set data.cache_dir");
  LOCKSTEP_RETURN_IF_ERROR(check_no_part(path, vocabulary));
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile source, MappedFile::open(path));
  const uint32_t token_bytes = vocabulary.size() <= kNarrowVocabulary ? 2 : 4;
  const auto tokenize = [&](const ByteSink& sink) -> Status {
    const std::string_view text(reinterpret_cast<const char*>(source.bytes().data()),
                                source.bytes().size());
    const auto no_utf8 = find_no_utf8(text);
    LOCKSTEP_RETURN_IF_ERROR(source.unchanged());  // a change would explain it
    if (no_utf8)
      return bad("is not UTF-8 at byte " + std::to_string(*no_utf8) +
                 "; convert it (iconv -t UTF-8), or leave out data.tokenizer");
    Status encoded = encode(text, vocabulary, token_bytes, sink);
    LOCKSTEP_RETURN_IF_ERROR(source.unchanged());
    return encoded;
  };
  Compressed what{path, "", tokenize};
  what.verb = "tokenizing";
  what.ending = "tokens";
  what.means = kVersion + vocabulary.sha256();
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile made, open_inflated(what, source, cache_dir, progress));
  const uint64_t tokens = (made.bytes().size() - kTrailerBytes) / token_bytes;
  return TokenizedText{std::move(made), tokens, token_bytes};
}

Result<std::unique_ptr<BpeVocabulary>> open_vocabulary(const SampleCut& cut) {
  if (cut.tokenizer.empty()) return std::unique_ptr<BpeVocabulary>();
  LOCKSTEP_ASSIGN_OR_RETURN(BpeVocabulary vocabulary, BpeVocabulary::open(cut.tokenizer));
  if (!cut.tokenizer_sha256.empty())
    LOCKSTEP_RETURN_IF_ERROR(
        check_vocabulary_hash(cut.tokenizer, cut.tokenizer_sha256, vocabulary.sha256()));
  return std::make_unique<BpeVocabulary>(std::move(vocabulary));
}

Status check_is_text(const SampleCut& cut, const std::string& path, const std::string& format) {
  if (cut.tokenizer.empty() || is_text_format(format)) return Status::ok();
  return {Code::kUsage, "data.tokenizer makes tokens of text, but " + path + " is of format " +
                            format + "; leave the tokenizer out, or name text"};
}

}  // namespace lockstep::data
