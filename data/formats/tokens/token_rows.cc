#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "comm/base/text/lower_case.h"
#include "data/dataset/weigh_files.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/npy_header.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/format_rows.h"
#include "data/formats/tokens/bin_tokens.h"
#include "data/formats/tokens/token_files.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

auto first_with(const Listing& directory, std::string_view ending) {
  return std::find_if(directory.names.begin(), directory.names.end(),
                      [&](const std::string& name) { return ends_like(name, ending); });
}

bool has_ending(const Listing& directory, std::string_view ending) {
  return first_with(directory, ending) != directory.names.end();
}

// Kind of an array among other data: means, embeddings and lists of places are arrays, but no
// tokens.
std::string loose_kind(std::span<const uint8_t> bytes) {
  const auto header = parse_npy_header(bytes);
  if (!header.is_ok() || header->dims.size() != 1) return "";
  const bool is_wide = header->is_integer() && header->element_bytes == 4;
  return is_wide || header->type_text() == "uint16" ? "tokens" : "";
}

Result<std::string> megatron_in(const Listing& directory) {
  const auto is_pair = [&](const std::string& name) {
    return name.ends_with(".idx") && is_megatron_file((fs::path(directory.path) / name).string());
  };
  return named_if(std::any_of(directory.names.begin(), directory.names.end(), is_pair), "megatron");
}
Result<std::string> megatron_at(const FileLook& file) {
  return named_if(is_megatron_file(file.path), "megatron");
}

Result<std::string> tokens_in(const Listing& directory) {
  if (has_ending(directory, ".bin")) return std::string("tokens");
  for (const std::string& name : directory.names) {
    if (!ends_like(name, ".npy")) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file,
                              MappedFile::open((fs::path(directory.path) / name).string()));
    if (const std::string kind = loose_kind(file.bytes()); !kind.empty()) return kind;
  }
  return named_if(has_safetensors(directory.path), "tokens");
}
// Finds any other array. Opening it says why it cannot be used.
Result<std::string> any_array_in(const Listing& directory) {
  const auto array = first_with(directory, ".npy");
  if (array == directory.names.end()) return std::string();
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file,
                            MappedFile::open((fs::path(directory.path) / *array).string()));
  return kind_of_array(file.bytes());
}
Result<std::string> bin_at(const FileLook& file) {
  return named_if(ends_like(file.path, ".bin"), "tokens");
}
Result<std::string> token_header_at(const FileLook& file) {
  return named_if(has_token_header(file.bytes), "tokens");
}

// Whether the name says that the text describes other data.
bool describes(const std::string& path) {
  return has_word(
      fs::path(path).stem().string(),
      {"readme",   "license",      "licence",     "copying",    "notice", "authors", "changelog",
       "citation", "requirements", "description", "words",      "wnids",  "classes", "class",
       "labels",   "names",        "synsets",     "categories", "about",  "info"});
}
Evidence weight_of_text(const Listing& directory) {
  Evidence evidence = weigh_files(
      directory, [](const std::string& path) { return is_text_name(path) && !describes(path); });
  if (evidence.example.empty()) evidence.example = weigh_files(directory, is_text_name).example;
  return evidence;
}
Result<std::string> text_in(const Listing& directory) {
  return named_if(has_ending(directory, ".txt"), "text");
}
Result<std::string> text_at(const FileLook& file) {
  return named_if(ends_like(file.path, ".txt"), "text");
}

bool is_token_directory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}
template <auto find>
bool tokens_have_eval(const std::string& path) {
  return is_token_directory(path) && find(path, Split::kEval).is_ok();
}
Result<bool> tokens_serve_both(const std::string& path) {
  return !is_token_directory(path);
}

}  // namespace

constinit const DataFormat kMegatronFormat{.name = "megatron",
                                           .in_directory = {{{DirectoryStep::kNames, megatron_in}}},
                                           .of_file = {{{FileStep::kPair, megatron_at}}},
                                           .has_eval = tokens_have_eval<find_megatron_bins>,
                                           .serves_both = tokens_serve_both};

// The probes of arrow find these.
constinit const DataFormat kArrowTokensFormat{.name = "arrow_tokens",
                                              .has_eval = tokens_have_eval<find_arrow_tokens>,
                                              .serves_both = tokens_serve_both};

constinit const DataFormat kTokensFormat{
    .name = "tokens",
    .in_directory = {{{DirectoryStep::kLoose, tokens_in, weight_of<is_token_name>},
                      {DirectoryStep::kRemains, any_array_in}}},
    .of_file = {{{FileStep::kEnding, bin_at}, {FileStep::kContent, token_header_at}}},
    .has_eval = tokens_have_eval<find_token_bins>,
    .serves_both = tokens_serve_both};

constinit const DataFormat kTokensU32Format{.name = "tokens_u32",
                                            .has_eval = tokens_have_eval<find_bare_bins>,
                                            .serves_both = tokens_serve_both};

constinit const DataFormat kTextFormat{
    .name = "text",
    .in_directory = {{{DirectoryStep::kLast, text_in, weight_of_text}}},
    .of_file = {{{FileStep::kEnding, text_at}}},
    .has_eval = tokens_have_eval<find_text_files>,
    .serves_both = tokens_serve_both};

}  // namespace lockstep::data
