#include "data/bpe/vocabulary.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/base/text/shallow_json.h"
#include "data/bpe/byte_letters.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;

constexpr int kMaxDepth = 16;  // of a tokenizer.json; nothing that is read is deeper
constexpr char kSeparator = '\0';

struct Files {
  std::string name;  // of the files that are there, for messages
  std::string json;
  std::string merges;
  std::vector<std::string> paths;
  bool is_pair = false;
  std::string sha256;
};

Result<std::string> read(const std::string& path) {
  auto text = read_file(path, limits::kVocabularyBytes);
  if (text.is_ok()) return text;
  const Code code = text.status().code() == Code::kNoInput ? Code::kNoInput : Code::kBadData;
  return Status(code, "data.tokenizer names " + path +
                          ", which Lockstep cannot read: " + text.status().message());
}

Result<Files> read_files(const std::string& path) {
  std::error_code error;
  Files files;
  files.name = path;
  if (fs::is_directory(path, error)) {
    files.name = path + "/tokenizer.json";
    if (!fs::exists(files.name, error)) {
      files.is_pair = true;
      files.name = path + "/vocab.json";
    }
  }
  if (files.name.ends_with(".tiktoken"))
    return Status(Code::kUsage,
                  "data.tokenizer names " + path +
                      "; a .tiktoken file does not hold the pattern that splits text, so name a "
                      "tokenizer.json, or a directory with vocab.json and merges.txt");
  LOCKSTEP_ASSIGN_OR_RETURN(files.json, read(files.name));
  files.paths = {files.name};
  if (!files.is_pair) {
    files.sha256 = to_hex(sha256(files.json));
    return files;
  }
  files.paths.push_back(path + "/merges.txt");
  LOCKSTEP_ASSIGN_OR_RETURN(files.merges, read(files.paths.back()));
  files.sha256 = to_hex(sha256(files.json + kSeparator + files.merges));
  return files;
}

}  // namespace

class VocabularyReader {
 public:
  explicit VocabularyReader(std::string name) : name_(std::move(name)) {}

  Result<BpeVocabulary> read_tokenizer(std::string_view text) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Json root, parse(text));
    LOCKSTEP_RETURN_IF_ERROR(check_kind(root));
    const Json& model = member(root, "model");
    LOCKSTEP_RETURN_IF_ERROR(take_tokens(member(model, "vocab")));
    LOCKSTEP_RETURN_IF_ERROR(take_added(member(root, "added_tokens")));
    const Json& merges = member(model, "merges");
    if (!merges.is_array()) return bad("has no list of merges");
    for (const Json& merge : merges) LOCKSTEP_RETURN_IF_ERROR(take_merge(merge));
    return finish();
  }

  Result<BpeVocabulary> read_pair(std::string_view json, std::string_view merges) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Json root, parse(json));
    LOCKSTEP_RETURN_IF_ERROR(take_tokens(root));
    size_t number = 0;
    while (!merges.empty()) {
      const size_t end = std::min(merges.find('\n'), merges.size());
      std::string_view line = merges.substr(0, end);
      merges.remove_prefix(std::min(end + 1, merges.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (number++ == 0 && line.starts_with("#version"))) continue;
      LOCKSTEP_RETURN_IF_ERROR(take_merge_line(line));
    }
    return finish();
  }

 private:
  Status bad(const std::string& what) const { return {Code::kBadData, name_ + " " + what}; }
  Status other(const std::string& what) const {
    return {
        Code::kUsage,
        name_ + " " + what + "; Lockstep reads only byte-level BPE that splits text as GPT-2 does"};
  }

  Result<Json> parse(std::string_view text) const {
    Json root = parse_shallow_json(text, kMaxDepth);
    if (root.is_discarded() || !root.is_object())
      return bad("is not a JSON object of a vocabulary");
    return root;
  }

  // Null if it is not there.
  static const Json& member(const Json& object, const char* key) {
    static const Json none;
    if (!object.is_object()) return none;
    const auto found = object.find(key);
    return found == object.end() ? none : *found;
  }
  static bool is_false(const Json& value) { return value.is_null() || value == false; }
  static bool is_nothing(const Json& value) { return value.is_null() || value == ""; }

  // Refuses everything that would make other tokens than this code.
  Status check_kind(const Json& root) const {
    const Json& model = member(root, "model");
    const Json& type = member(model, "type");  // older files do not say it
    if (type.is_null() ? !member(model, "merges").is_array() : type != "BPE")
      return other("holds a model other than BPE");
    if (!member(root, "normalizer").is_null()) return other("has a normalizer");
    const Json* cut = &member(root, "pre_tokenizer");
    if (member(*cut, "type") == "Sequence" && member(*cut, "pretokenizers").is_array() &&
        (*cut)["pretokenizers"].size() == 1)
      cut = &(*cut)["pretokenizers"][0];
    if (member(*cut, "type") != "ByteLevel" || member(*cut, "use_regex") == false)
      return other("splits text with a pre_tokenizer other than ByteLevel's own pattern");
    if (!is_false(member(*cut, "add_prefix_space"))) return other("puts a space before text");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!is_nothing(member(model, key))) return other(std::string("has a ") + key);
    for (const char* key : {"byte_fallback", "ignore_merges"})
      if (!is_false(member(model, key))) return other(std::string("sets ") + key);
    if (!member(model, "dropout").is_null() && member(model, "dropout") != 0)
      return other("drops merges at random");
    return Status::ok();
  }

  std::optional<uint32_t> id_of(const Json& value) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= limits::kVocabulary)
      return std::nullopt;
    return value.get<uint32_t>();
  }

  Status take_tokens(const Json& vocab) {
    if (!vocab.is_object()) return bad("has no vocabulary");
    std::array<bool, 256> seen{};
    for (const auto& [text, value] : vocab.items()) {
      const auto id = id_of(value);
      if (!id)
        return bad("gives \"" + shown(text) + "\" an id that is not a number below " +
                   std::to_string(limits::kVocabulary));
      if (text.size() > limits::kVocabularyTokenBytes)
        return bad("has a token of " + std::to_string(text.size()) + " bytes");
      made_.size_ = std::max(made_.size_, *id + 1);
      ids_.emplace(text, *id);
      // A text with anything but letters of bytes stands for itself, as an added token does.
      made_.texts_.emplace(*id, bytes_of_letters(text).value_or(text));
      const auto byte = byte_of_letter(text);
      if (!byte) continue;
      made_.bytes_[*byte] = *id;
      seen[*byte] = true;
    }
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing == seen.end()) return Status::ok();
    return bad("has no token for byte " + std::to_string(missing - seen.begin()) +
               ", so some texts could not be encoded");
  }

  Status take_added(const Json& list) {
    if (list.is_null()) return Status::ok();
    if (!list.is_array() || list.size() > limits::kAddedTokens)
      return bad("has added_tokens that are not a list of at most " +
                 std::to_string(limits::kAddedTokens) + " tokens");
    for (const Json& added : list) {
      const Json& text = member(added, "content");
      const auto id = id_of(member(added, "id"));
      if (!text.is_string() || text.get_ref<const std::string&>().empty() || !id ||
          text.get_ref<const std::string&>().size() > limits::kVocabularyTokenBytes)
        return bad("has an added token without content or id");
      for (const char* key : {"single_word", "lstrip", "rstrip"})
        if (!is_false(member(added, key)))
          return other("has the added token \"" + shown(text) + "\" with " + key);
      LOCKSTEP_RETURN_IF_ERROR(check_added_id(text.get_ref<const std::string&>(), *id));
      made_.size_ = std::max(made_.size_, *id + 1);
      made_.added_.push_back({text, *id, member(added, "normalized") == true});
      made_.texts_[*id] = text;
    }
    return Status::ok();
  }

  // The tokenizers library gives an added token the id that its text has, or else the next one,
  // whatever id the file states.
  Status check_added_id(const std::string& text, uint32_t id) {
    const auto known = ids_.find(text);
    uint32_t wanted = static_cast<uint32_t>(ids_.size());
    for (const auto& added : made_.added_) wanted = std::max(wanted, added.token + 1);
    if (known != ids_.end()) wanted = known->second;
    if (id == wanted) return Status::ok();
    return other("gives the added token \"" + shown(text) + "\" the id " + std::to_string(id) +
                 ", but the tokenizers library gives it " + std::to_string(wanted));
  }

  // "left right", or since tokenizers 0.20 ["left", "right"].
  Status take_merge(const Json& merge) {
    if (merge.is_string()) return take_merge_line(merge.get_ref<const std::string&>());
    if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
      return bad_merge("is not a pair");
    return take_pair(merge[0].get_ref<const std::string&>(),
                     merge[1].get_ref<const std::string&>());
  }
  Status take_merge_line(std::string_view line) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      return bad_merge("is not a pair");
    return take_pair(line.substr(0, space), line.substr(space + 1));
  }
  Status take_pair(std::string_view left, std::string_view right) {
    const auto a = ids_.find(std::string(left));
    const auto b = ids_.find(std::string(right));
    const auto both = ids_.find(std::string(left) + std::string(right));
    if (a == ids_.end() || b == ids_.end() || both == ids_.end())
      return bad_merge("has a part or a result that is not a token");
    // If a pair is there twice, the last one counts.
    made_.merges_.insert_or_assign(uint64_t{a->second} << 32 | b->second,
                                   BpeVocabulary::Merge{merges_, both->second});
    ++merges_;
    return Status::ok();
  }
  Status bad_merge(const std::string& what) const {
    return bad("is damaged: merge " + std::to_string(merges_ + 1) + " " + what);
  }

  static std::string shown(const std::string& text) { return text.substr(0, 64); }

  Result<BpeVocabulary> finish() {
    // Longest first: if several fit, the longest counts.
    std::stable_sort(made_.added_.begin(), made_.added_.end(),
                     [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
    return std::move(made_);
  }

  std::string name_;
  BpeVocabulary made_;
  std::unordered_map<std::string, uint32_t> ids_;
  uint32_t merges_ = 0;
};

Result<BpeVocabulary> parse_vocabulary(const std::string& name, std::string_view json,
                                       std::string_view merges) {
  VocabularyReader reader(name);
  return merges.empty() ? reader.read_tokenizer(json) : reader.read_pair(json, merges);
}

Result<BpeVocabulary> BpeVocabulary::open(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Files files, read_files(path));
  VocabularyReader reader(files.name);
  auto vocabulary = files.is_pair ? reader.read_pair(files.json, files.merges)
                                  : reader.read_tokenizer(files.json);
  LOCKSTEP_RETURN_IF_ERROR(vocabulary.status());
  vocabulary->sha256_ = files.sha256;
  vocabulary->files_ = files.paths;
  return vocabulary;
}

Result<std::string> vocabulary_sha256(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(Files files, read_files(path));
  return std::move(files.sha256);
}

Status check_vocabulary_hash(const std::string& path, const std::string& wanted,
                             const std::string& found) {
  if (wanted == found) return Status::ok();
  return {
      Code::kUsage,
      "data.tokenizer names " + path + ". The file has SHA-256 " + found +
          ", but the run began with " + wanted +
          " (data.tokenizer_sha256). Put that file back, or start a new run in another --run-dir"};
}

}  // namespace lockstep::data
