#include "data/formats/tokens/token_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "data/base/file_errors.h"
#include "data/files/list_files.h"
#include "data/formats/arrays/npy_header.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/tokens/megatron_index.h"
#include "data/formats/tokens/safetensors_tokens.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr char kTokens[] = "tokens";
constexpr char kTokensU32[] = "tokens_u32";
constexpr char kText[] = "text";
constexpr char kMegatron[] = "megatron";
constexpr char kArrow[] = "arrow_tokens";
constexpr char kBinEnding[] = ".bin";
constexpr char kArrayEnding[] = ".npy";
constexpr char kTensorEnding[] = ".safetensors";
constexpr char kIndexEnding[] = ".idx";
constexpr char kTextEnding[] = ".txt";

// llm.c's header: 256 numbers of four bytes, of which the first three say something.
constexpr uint64_t kHeaderBytes = 1024;
struct HeaderKind {
  uint32_t magic;
  uint32_t version;
  uint32_t token_bytes;
};
constexpr HeaderKind kHeaderKinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

// REQUIRES: at least 4 (i + 1) bytes.
uint32_t header_word(std::span<const uint8_t> bytes, size_t i) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + 4 * i, sizeof value);
  return value;
}

const HeaderKind* header_kind(std::span<const uint8_t> file) {
  if (file.size() < sizeof(uint32_t)) return nullptr;
  const uint32_t magic = header_word(file, 0);
  const auto* kind = std::find_if(std::begin(kHeaderKinds), std::end(kHeaderKinds),
                                  [magic](const HeaderKind& k) { return k.magic == magic; });
  return kind == std::end(kHeaderKinds) ? nullptr : kind;
}

// With llm.c's header.
Result<TokenRange> range_behind_header(std::span<const uint8_t> file, const HeaderKind& kind) {
  if (file.size() < kHeaderBytes)
    return bad("is truncated: it ends at offset " + std::to_string(file.size()) +
               ", inside its header of " + std::to_string(kHeaderBytes) + " bytes");
  if (header_word(file, 1) != kind.version)
    return bad("has version " + std::to_string(header_word(file, 1)) +
               " at offset 4; Lockstep reads version " + std::to_string(kind.version));
  const TokenRange range{kHeaderBytes, header_word(file, 2), kind.token_bytes};
  const uint64_t wanted = kHeaderBytes + range.tokens * range.token_bytes;
  if (file.size() == wanted) return range;
  return bad((file.size() < wanted ? "is truncated: it has " : "has ") +
             std::to_string(file.size()) + " bytes, its header promises " + std::to_string(wanted));
}

Result<TokenRange> range_in_array(std::span<const uint8_t> file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const NpyHeader header, parse_npy_header(file));
  if (header.dims.size() != 1)
    return bad("has the shape " + header.shape_text() +
               ", but tokens have one dimension; write it again: numpy.save(FILE, a.reshape(-1)), "
               "or for images name the directory");
  const bool is_wide = header.is_integer() && header.element_bytes == 4;
  if (!is_wide && header.type_text() != "uint16")
    return bad("holds " + header.type_text() +
               ", but tokens are uint16, uint32 or int32; write it again: numpy.save(FILE, "
               "a.astype(\"uint32\")), or \"uint16\" for a vocabulary of at most 65536");
  LOCKSTEP_RETURN_IF_ERROR(check_npy_size(header, file.size()));
  return TokenRange{header.header_bytes, header.dims[0], header.element_bytes, header.kind == 'i'};
}

// Of both files of a pair, and of the prefix that they share.
std::string without_ending(const std::string& path) {
  return path.ends_with(kBinEnding) || path.ends_with(kIndexEnding)
             ? path.substr(0, path.size() - 4)
             : path;
}

// The *.bin of a pair that is named by either file or its prefix.
Result<std::vector<std::string>> megatron_pair(const std::string& path) {
  const std::string prefix = without_ending(path);
  for (const char* ending : {kIndexEnding, kBinEnding}) {
    std::error_code error;
    if (fs::is_regular_file(prefix + ending, error)) continue;
    return Status(Code::kNoInput, prefix + ending +
                                      " is not there; an indexed dataset of Megatron-LM is a pair "
                                      "of *.bin and *.idx");
  }
  return std::vector<std::string>{prefix + kBinEnding};
}

// Tokens lie in *.bin, where a directory has none in *.npy, and else in *.safetensors.
std::string ending_of(const std::vector<std::string>& names, const std::string& format) {
  if (format == kText) return kTextEnding;
  if (format == kMegatron) return kIndexEnding;
  const auto any = [&](std::string_view ending) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name.ends_with(ending); });
  };
  if (format != kTokens || any(kBinEnding)) return kBinEnding;
  return any(kArrayEnding) || !any(kTensorEnding) ? kArrayEnding : kTensorEnding;
}

}  // namespace

bool has_token_header(std::span<const uint8_t> file) {
  return header_kind(file) != nullptr;
}

bool is_megatron_file(const std::string& path) {
  const std::string prefix = without_ending(path);
  std::error_code error;
  if (!fs::is_regular_file(prefix + kBinEnding, error)) return false;
  const auto index = MappedFile::open(prefix + kIndexEnding);
  return index.is_ok() && is_megatron_index(index->bytes());
}

Result<std::vector<std::string>> find_token_files(const std::string& path,
                                                  const std::string& format, Split split) {
  std::error_code error;
  if (format == kArrow) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(path, split));
    std::vector<std::string> files;
    for (const std::string& name : shards.names) files.push_back(shards.directory + "/" + name);
    return files;
  }
  if (!fs::is_directory(path, error)) {
    if (format == kMegatron) return megatron_pair(path);
    if (fs::exists(path, error)) return std::vector<std::string>{path};
    return Status(Code::kNoInput, "data " + path + " is not there");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
  const std::string ending = ending_of(names, format);
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    const bool is_wanted = is_for_evaluation(name) == (split == Split::kEval);
    if (name.ends_with(ending) && is_wanted) paths.push_back((fs::path(path) / name).string());
  }
  if (paths.empty())
    return Status(Code::kNoInput,
                  "data directory " + path + " holds no file *" + ending +
                      (split == Split::kEval ? " with \"val\", \"test\" or \"eval\" in its name"
                                             : " for training"));
  if (format != kMegatron) return paths;
  for (std::string& index : paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto pair, megatron_pair(index));
    index = pair.front();
  }
  return paths;
}

Result<TokenRange> token_range(std::span<const uint8_t> file, const std::string& format) {
  if (file.empty()) return bad("is empty");
  if (format == kText) return TokenRange{0, file.size(), 1};
  if (format == kTokens && is_npy(file)) return range_in_array(file);
  const HeaderKind* kind = header_kind(file);
  if (kind != nullptr && format == kTokens) return range_behind_header(file, *kind);
  const uint32_t token_bytes = format == kTokensU32 ? 4 : 2;
  if (file.size() % token_bytes == 0) return TokenRange{0, file.size() / token_bytes, token_bytes};
  return bad("has " + std::to_string(file.size()) + " bytes, not a multiple of the " +
             std::to_string(token_bytes) + " bytes of a token: the last token, at offset " +
             std::to_string(file.size() / token_bytes * token_bytes) + ", is cut off");
}

Result<TokenRange> token_range_of(const std::string& path, const MappedFile& file,
                                  const std::string& format) {
  const auto named = [](const std::string& name, const Status& status) {
    return Status(status.code(), name + " " + status.message());
  };
  if (format != kMegatron) {
    const auto range = format == kTokens && is_safetensors_name(path)
                           ? tokens_in_safetensors(file.bytes())
                           : token_range(file.bytes(), format);
    return range.is_ok() ? range : named(path, range.status());
  }
  const std::string index_path = without_ending(path) + kIndexEnding;
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile index_file, MappedFile::open(index_path));
  const auto index = parse_megatron_index(index_file.bytes());
  if (!index.is_ok()) return named(index_path, index.status());
  const uint64_t bytes = file.bytes().size();
  if (bytes == index->bin_bytes())
    return TokenRange{0, index->tokens, index->token_bytes, index->is_signed};
  return bad(path + (bytes < index->bin_bytes() ? " is truncated: it has " : " has ") +
             std::to_string(bytes) + " bytes, its index " + index_path + " promises " +
             std::to_string(index->bin_bytes()) + "; copy both again");
}

Result<std::vector<uint64_t>> megatron_documents_of(const std::string& path, uint64_t tokens) {
  const std::string index_path = without_ending(path) + kIndexEnding;
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile index_file, MappedFile::open(index_path));
  auto ends = megatron_documents(index_file.bytes());
  if (!ends.is_ok()) return about(index_path, ends.status());
  if (!ends->empty() && ends->back() == tokens) return ends;
  return bad(index_path + " changed while it was opened; try again");
}

std::string shown_token_format(const std::string& format) {
  return format.starts_with(kTokens) ? kTokens : format;
}

}  // namespace lockstep::data
