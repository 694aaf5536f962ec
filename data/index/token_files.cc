#include "data/index/token_files.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "data/index/idx_pair.h"
#include "data/index/list_files.h"
#include "data/index/mapped_file.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr char kTokens[] = "tokens";
constexpr char kTokensU32[] = "tokens_u32";
constexpr char kText[] = "text";
constexpr std::string_view kTokenEnding = ".bin";
constexpr std::string_view kTextEnding = ".txt";

// llm.c's header: 256 numbers of four bytes, of which the first three say something.
constexpr uint64_t kHeaderBytes = 1024;
struct HeaderKind {
  uint32_t magic;
  uint32_t version;
  uint32_t token_bytes;
};
constexpr HeaderKind kHeaderKinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

// REQUIRES: at least 4 (i + 1) bytes.
uint32_t number(std::span<const uint8_t> bytes, size_t i) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + 4 * i, sizeof value);
  return value;
}

const HeaderKind* header_kind(std::span<const uint8_t> file) {
  if (file.size() < sizeof(uint32_t)) return nullptr;
  const uint32_t magic = number(file, 0);
  const auto* kind = std::find_if(std::begin(kHeaderKinds), std::end(kHeaderKinds),
                                  [magic](const HeaderKind& k) { return k.magic == magic; });
  return kind == std::end(kHeaderKinds) ? nullptr : kind;
}

bool is_for_evaluation(const std::string& name) {
  std::string word;
  const auto is_word = [&] { return word == "val" || word == "test" || word == "eval"; };
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (is_word()) return true;
    word.clear();
  }
  return is_word();
}

Status bad(const std::string& what) {
  return {Code::kBadData, what};
}

// With llm.c's header.
Result<TokenRange> range_behind_header(std::span<const uint8_t> file, const HeaderKind& kind) {
  if (file.size() < kHeaderBytes)
    return bad("is truncated: it ends at offset " + std::to_string(file.size()) +
               ", inside its header of " + std::to_string(kHeaderBytes) + " bytes");
  if (number(file, 1) != kind.version)
    return bad("says at offset 4 that it is of version " + std::to_string(number(file, 1)) +
               "; known is " + std::to_string(kind.version));
  const TokenRange range{kHeaderBytes, number(file, 2), kind.token_bytes};
  const uint64_t wanted = kHeaderBytes + range.tokens * range.token_bytes;
  if (file.size() == wanted) return range;
  return bad((file.size() < wanted ? "is truncated: it has " : "has ") +
             std::to_string(file.size()) + " bytes, its header promises " + std::to_string(wanted));
}

}  // namespace

bool is_token_format(const std::string& format) {
  return format == kTokens || format == kTokensU32 || format == kText;
}

Result<std::string> detect_format(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
    if (find_idx_pair(path, Split::kTrain).is_ok()) return std::string("idx");
    const auto any = [&](std::string_view ending) {
      return std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) { return name.ends_with(ending); });
    };
    if (any(kTokenEnding)) return std::string(kTokens);
    return std::string(any(kTextEnding) ? kText : "idx");
  }
  if (!fs::exists(path, error)) return Status(Code::kNoInput, "data " + path + " is not there");
  if (path.ends_with(kTokenEnding)) return std::string(kTokens);
  if (path.ends_with(kTextEnding)) return std::string(kText);
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  if (header_kind(file.bytes()) != nullptr) return std::string(kTokens);
  return Status(Code::kUsage, path +
                                  " is a file whose format its name does not tell; set "
                                  "data.train.format to text, tokens or tokens_u32");
}

Result<std::vector<std::string>> find_token_files(const std::string& path,
                                                  const std::string& format, Split split) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (fs::exists(path, error)) return std::vector<std::string>{path};
    return Status(Code::kNoInput, "data " + path + " is not there");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
  const std::string_view ending = format == kText ? kTextEnding : kTokenEnding;
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    const bool is_wanted = is_for_evaluation(name) == (split == Split::kEval);
    if (name.ends_with(ending) && is_wanted) paths.push_back((fs::path(path) / name).string());
  }
  if (!paths.empty()) return paths;
  return Status(Code::kNoInput,
                "data directory " + path + " holds no file *" + std::string(ending) +
                    (split == Split::kEval ? " with \"val\", \"test\" or \"eval\" in its name"
                                           : " for training"));
}

Result<TokenRange> token_range(std::span<const uint8_t> file, const std::string& format) {
  if (file.empty()) return bad("is empty");
  if (format == kText) return TokenRange{0, file.size(), 1};
  const HeaderKind* kind = header_kind(file);
  if (kind != nullptr && format == kTokens) return range_behind_header(file, *kind);
  const uint32_t token_bytes = format == kTokensU32 ? 4 : 2;
  if (file.size() % token_bytes == 0) return TokenRange{0, file.size() / token_bytes, token_bytes};
  return bad("has " + std::to_string(file.size()) + " bytes, no multiple of the " +
             std::to_string(token_bytes) + " of a token: the last one, at offset " +
             std::to_string(file.size() / token_bytes * token_bytes) + ", is cut off");
}

}  // namespace lockstep::data
