#include "worker/model/weights/weight_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/base/text/shallow_json.h"
#include "comm/base/text/shell_word.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kEnding = ".safetensors";
constexpr std::string_view kIndexEnding = ".safetensors.index.json";
constexpr std::string_view kPickleEndings[] = {".pth", ".pt", ".bin", ".ckpt", ".pkl"};
constexpr int kIndexDepth = 3;

bool is_pickle_name(const std::string& name) {
  return std::ranges::any_of(kPickleEndings, [&](auto end) { return name.ends_with(end); });
}

// torch.save's archives, and its older files. The length of a safetensors header may begin with the
// bytes of a pickle, but its ninth byte is a brace.
bool begins_as_pickle(std::span<const uint8_t> bytes) {
  if (bytes.size() > safetensors::kPrefixBytes && bytes[safetensors::kPrefixBytes] == '{')
    return false;
  const bool is_zip = bytes.size() > 4 && bytes[0] == 'P' && bytes[1] == 'K' && bytes[2] == 3;
  return is_zip || (bytes.size() > 2 && bytes[0] == 0x80 && bytes[1] <= 5);
}

Status is_a_pickle(WeightSource source, const std::string& path) {
  const std::string code =
      "import sys, torch, safetensors.torch as s; s.save_file({k: v.contiguous().clone() for k, v "
      "in torch.load(sys.argv[1], weights_only=True).items()}, sys.argv[2])";
  const std::string target = fs::path(path).replace_extension(".safetensors").string();
  return {Code::kConfig, subject(source, path) +
                             " is a pickle of Python, which Lockstep does not open. Convert it: "
                             "python3 -c " +
                             shell_word(code) + " " + shell_word(path) + " " + shell_word(target)};
}

// Chooses the file to open in a directory.
Result<std::string> file_in_directory(WeightSource source, const std::string& path) {
  std::vector<std::string> weights;
  std::vector<std::string> indexes;
  std::string pickle;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(kIndexEnding)) indexes.push_back(name);
    if (name.ends_with(kEnding)) weights.push_back(name);
    if (is_pickle_name(name)) pickle = name;
  }
  if (error)
    return Status(Code::kConfig, subject(source, path) + " cannot be read: " + error.message());
  const auto in = [&path](const std::string& name) { return (fs::path(path) / name).string(); };
  if (std::ranges::count(weights, "model.safetensors") == 1) return in("model.safetensors");
  if (indexes.size() == 1) return in(indexes[0]);
  if (indexes.empty() && weights.size() == 1) return in(weights[0]);
  if (weights.empty() && !pickle.empty()) return is_a_pickle(source, in(pickle));
  if (weights.empty())
    return Status(Code::kNoInput, subject(source, path) +
                                      " is a directory without *.safetensors; name the file with "
                                      "the weights");
  return Status(Code::kConfig, subject(source, path) + " is a directory with " +
                                   std::to_string(weights.size()) +
                                   " safetensors files and no index; name one of them");
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name[0] != '.';
}

Status bad_index(const std::string& path, const std::string& what) {
  return {Code::kBadData, "the index " + path + " " + what};
}

Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            read_file(path, limits::kSafetensorsHeaderBytes));
  const Json root = parse_shallow_json(text, kIndexDepth);
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object())
    return bad_index(path, "is not a JSON object with a weight_map");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : root["weight_map"].items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      return bad_index(path, "names no file beside it for the tensor '" + tensor + "'");
    files[tensor] = file.get<std::string>();
  }
  if (files.empty()) return bad_index(path, "names no tensor");
  return files;
}

}  // namespace

std::string subject(WeightSource source, const std::string& path) {
  return source == WeightSource::kInit ? "model.init names " + path + ", which" : path;
}

Status WeightFiles::add(const std::string& path) {
  auto mapped = data::MappedFile::open(path);
  if (!mapped.is_ok())
    return source_ == WeightSource::kInit ? mapped.status().with_context("model.init")
                                          : mapped.status();
  const std::span<const uint8_t> bytes = mapped->bytes();
  if (begins_as_pickle(bytes)) return is_a_pickle(source_, path);
  const auto header =
      safetensors::parse_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!header.is_ok())
    return {header.status().code(), subject(source_, path) + " is " + header.status().message()};
  for (const safetensors::Entry& entry : header->tensors)
    tensors_.push_back(
        {entry.name, entry.type, entry.shape, bytes.data() + header->data_begin + entry.begin});
  metadata_.insert(header->metadata.begin(), header->metadata.end());
  files_.emplace(fs::path(path).filename().string(), std::move(mapped).value());
  return Status::ok();
}

Status WeightFiles::add_indexed(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto map, read_index(path));
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  std::map<std::string, std::string> found;  // tensor -> file
  for (const std::string& name : names) {
    const size_t before = tensors_.size();
    LOCKSTEP_RETURN_IF_ERROR(add((fs::path(path).parent_path() / name).string()));
    for (size_t i = before; i < tensors_.size(); ++i) {
      const auto [at, is_new] = found.emplace(tensors_[i].name, name);
      if (!is_new)
        return bad_index(path, "has the tensor '" + tensors_[i].name + "' in both " + at->second +
                                   " and " + name);
    }
  }
  for (const auto& [tensor, file] : map) {
    const auto at = found.find(tensor);
    if (at == found.end() || at->second != file)
      return bad_index(path,
                       "says that '" + tensor + "' is in " + file + ", which does not have it");
  }
  return Status::ok();
}

Result<WeightFiles> WeightFiles::open(const std::string& path, WeightSource source) {
  std::error_code error;
  std::string file = path;
  if (!fs::exists(path, error))
    return Status(Code::kNoInput,
                  subject(source, path) +
                      (source == WeightSource::kInit
                           ? " is not there; give a path that exists on every worker's machine"
                           : " is not there; take another checkpoint, or export again"));
  if (fs::is_directory(path, error)) {
    LOCKSTEP_ASSIGN_OR_RETURN(file, file_in_directory(source, path));
  }
  WeightFiles files(source);
  const bool is_index = file.ends_with(".json");
  LOCKSTEP_RETURN_IF_ERROR(is_index ? files.add_indexed(file) : files.add(file));
  std::ranges::sort(files.tensors_, {}, &FileTensor::name);
  return files;
}

Result<std::string> WeightFiles::sha256() const {
  std::string lines;
  std::string hash;
  for (const auto& [name, file] : files_) {
    const auto bytes = file.bytes();
    hash = to_hex(lockstep::sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    lines += hash + "  " + name + "\n";
  }
  LOCKSTEP_RETURN_IF_ERROR(unchanged());
  return files_.size() == 1 ? hash : to_hex(lockstep::sha256(lines));
}

Status WeightFiles::unchanged() const {
  for (const auto& [name, file] : files_) LOCKSTEP_RETURN_IF_ERROR(file.unchanged());
  return Status::ok();
}

Result<std::string> hash_weight_files(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::open(path, WeightSource::kInit));
  return files.sha256();
}

Status check_weights_hash(const std::string& path, const std::string& wanted,
                          const std::string& found) {
  if (wanted.empty() || wanted == found) return Status::ok();
  return {Code::kUsage, "model.init names " + path +
                            ", whose content has changed: its SHA-256 is " + found +
                            ", and model.init_sha256 of this run is " + wanted +
                            ". Put the files back as they were, or start a new run in another "
                            "--run-dir"};
}

}  // namespace lockstep
