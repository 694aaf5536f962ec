#include "data/formats/tokens/token_format.h"

#include <algorithm>
#include <iterator>

#include "comm/base/check.h"
#include "comm/run/job/data_formats.h"
#include "data/base/file_errors.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/tokens/arrow_tokens.h"
#include "data/formats/tokens/bin_tokens.h"
#include "data/formats/tokens/megatron_index.h"
#include "data/formats/tokens/safetensors_tokens.h"
#include "data/formats/tokens/token_files.h"

namespace lockstep::data {
namespace {

// The file's own bytes tell.
template <auto tokens_in>
Result<TokenRange> range_by(const std::string& path, std::span<const uint8_t> file) {
  const Result<TokenRange> range = tokens_in(file);
  return range.is_ok() ? range : about(path, range.status());
}

Result<TokenRange> token_range(const std::string& path, std::span<const uint8_t> file) {
  return is_safetensors_name(path) ? range_by<tokens_in_safetensors>(path, file)
                                   : range_by<tokens_in_bin>(path, file);
}

Result<TokenRange> megatron_range(const std::string& path, std::span<const uint8_t> file) {
  const std::string index_path = megatron_index_of(path);
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile index_file, MappedFile::open(index_path));
  const auto index = parse_megatron_index(index_file.bytes());
  if (!index.is_ok()) return about(index_path, index.status());
  const uint64_t bytes = file.size();
  if (bytes == index->bin_bytes())
    return TokenRange{0, index->tokens, index->token_bytes, index->is_signed};
  return bad(path + (bytes < index->bin_bytes() ? " is truncated: it has " : " has ") +
             std::to_string(bytes) + " bytes, its index " + index_path + " promises " +
             std::to_string(index->bin_bytes()) + "; copy both again");
}

Result<std::vector<uint64_t>> megatron_ends(const std::string& path, uint64_t tokens) {
  const std::string index_path = megatron_index_of(path);
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile index_file, MappedFile::open(index_path));
  auto ends = megatron_documents(index_file.bytes());
  if (!ends.is_ok()) return about(index_path, ends.status());
  if (!ends->empty() && ends->back() == tokens) return ends;
  return bad(index_path + " changed while it was opened; try again");
}

Result<std::vector<uint64_t>> each_file_is_one(const std::string&, uint64_t) {
  return std::vector<uint64_t>();
}

constexpr TokenFormat kTokenFormats[] = {
    {.name = "tokens",
     .shown = "tokens",
     .hashed = "tokens",
     .find = find_token_bins,
     .range = token_range},
    {.name = "tokens_u32",
     .shown = "tokens",
     .hashed = "tokens",
     .find = find_bare_bins,
     .range = range_by<tokens_in_bare_u32>},
    {.name = "text",
     .shown = "text",
     .hashed = "text",
     .find = find_text_files,
     .range = range_by<tokens_in_text>,
     .document_ends = each_file_is_one},
    {.name = "megatron",
     .shown = "megatron",
     .hashed = "megatron",
     .find = find_megatron_bins,
     .range = megatron_range,
     .document_ends = megatron_ends},
    {.name = "arrow_tokens",
     .shown = "arrow_tokens",
     .hashed = "tokens",
     .find = find_arrow_tokens,
     .open = open_arrow_tokens},
};

constexpr const TokenFormat* row_of(std::string_view name) {
  return std::find_if(std::begin(kTokenFormats), std::end(kTokenFormats),
                      [name](const TokenFormat& row) { return row.name == name; });
}

static_assert(std::all_of(std::begin(kNamedFormats), std::end(kNamedFormats),
                          [](const NamedFormat& named) {
                            return (named.kind == SampleKind::kSequence) ==
                                   (row_of(named.name) != std::end(kTokenFormats));
                          }),
              "the formats of sequences are those with a row");

}  // namespace

const TokenFormat& token_format(std::string_view name) {
  const TokenFormat* const found = row_of(name);
  LOCKSTEP_CHECK(found != std::end(kTokenFormats), "the format is one of tokens");
  return *found;
}

}  // namespace lockstep::data
