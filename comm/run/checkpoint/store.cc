#include "comm/run/checkpoint/store.h"

#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include "comm/base/check.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

constexpr char kTemporaryPrefix[] = "tmp-";

std::string path_join(const std::string& dir, const std::string& name) {
  return dir + "/" + name;
}

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

// Names of the entries of `dir`, sorted; none when it is not there.
Result<std::vector<std::string>> entries(const std::string& dir) {
  std::vector<std::string> names;
  DIR* handle = ::opendir(dir.c_str());
  if (handle == nullptr) {
    if (errno == ENOENT) return names;
    return Status(Code::kInternal, "cannot list " + dir + ": " + errno_text(errno));
  }
  while (const dirent* entry = ::readdir(handle)) names.emplace_back(entry->d_name);
  ::closedir(handle);
  std::sort(names.begin(), names.end());
  return names;
}

// A decimal number at the front of `text`, which is cut off. At least `digits` of them; no more
// zeros in front than that needs, so that every number has one text.
std::optional<uint64_t> take_number(std::string_view& text, size_t digits) {
  size_t n = 0;
  uint64_t value = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') {
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(text[n] - '0'), &value))
      return std::nullopt;
    ++n;
  }
  if (n < digits || (n > digits && text[0] == '0')) return std::nullopt;
  text.remove_prefix(n);
  return value;
}

constexpr char kEdgeSuffix[] = "-edge";

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

}  // namespace

CheckpointName name_of(const Manifest& manifest) {
  return {manifest.resume.step, manifest.generation, manifest.member, manifest.is_after_edge};
}

std::string checkpoint_name(const CheckpointName& name) {
  char text[96];
  std::snprintf(
      text, sizeof text, "step-%010llu-g%llu-m%llu%s", static_cast<unsigned long long>(name.step),
      static_cast<unsigned long long>(name.generation),
      static_cast<unsigned long long>(name.member), name.is_after_edge ? kEdgeSuffix : "");
  return text;
}

std::optional<CheckpointName> parse_checkpoint_name(std::string_view text) {
  constexpr size_t kStepDigits = 10;
  if (!take(text, "step-")) return std::nullopt;
  const auto step = take_number(text, kStepDigits);
  if (!step || !take(text, "-g")) return std::nullopt;
  const auto generation = take_number(text, 1);
  if (!generation || !take(text, "-m")) return std::nullopt;
  const auto member = take_number(text, 1);
  if (!member) return std::nullopt;
  const bool is_after_edge = take(text, kEdgeSuffix);
  if (!text.empty()) return std::nullopt;
  return CheckpointName{*step, *generation, *member, is_after_edge};
}

bool is_after_edge(std::string_view checkpoint) {
  const auto name = parse_checkpoint_name(checkpoint);
  return name && name->is_after_edge;
}

Result<CheckpointInfo> read_checkpoint_info(const std::string& path) {
  CheckpointInfo info;
  info.path = path;
  info.name = last_part(path);
  auto text = read_file(path_join(path, kManifestName), limits::kManifestBytes);
  if (!text.is_ok()) {
    std::error_code error;
    if (std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error))
      return Status(Code::kBadData, "checkpoint " + path + " is damaged: it is not a directory");
    // Too large to be one of ours is damage of the checkpoint, not a mistake of the caller.
    const Code code = text.status().code() == Code::kUsage ? Code::kBadData : text.status().code();
    return Status(code,
                  "checkpoint " + path + " has no readable manifest: " + text.status().message());
  }
  auto manifest = manifest_from_json(*text);
  if (!manifest.is_ok()) return manifest.status().with_context(path);
  info.manifest = std::move(manifest).value();
  info.manifest_sha256 = to_hex(sha256(*text));
  info.bytes = text->size();
  for (const ManifestFile& file : info.manifest.files) info.bytes += file.bytes;

  // A copy under a name of the user's own is fine; one of ours must tell the truth.
  const auto name = parse_checkpoint_name(info.name);
  const Manifest& m = info.manifest;
  if (name && *name != name_of(m))
    return Status(Code::kBadData, path + ": the manifest is that of another checkpoint, " +
                                      checkpoint_name(name_of(m)));
  return info;
}

Result<std::vector<ListedCheckpoint>> list_checkpoints(const std::string& dir) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, entries(dir));
  std::vector<ListedCheckpoint> list;
  for (const std::string& text : names) {
    const auto name = parse_checkpoint_name(text);
    if (!name) continue;
    ListedCheckpoint& item = list.emplace_back();
    item.name = *name;
    item.path = path_join(dir, text);
    auto info = read_checkpoint_info(item.path);
    item.status = info.status();
    if (info.is_ok()) item.info = std::move(info).value();
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

Result<std::string> see_manifest(const std::string& dir, const std::string& name) {
  // A network file system may remember that a file is not there, but looks again when its directory
  // is listed.
  std::error_code ignored;
  const std::filesystem::directory_iterator listed(dir, ignored);
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo info, read_checkpoint_info(path_join(dir, name)));
  return info.manifest_sha256;
}

Status damaged_since(const Status& error) {
  if (error.code() != Code::kBadData) return error;
  return Status(Code::kInternal, error.message() +
                                     ", and it was whole when the coordinator chose it; the run "
                                     "goes on from an older checkpoint");
}

Result<int> prune_checkpoints(FileOps& files, const std::string& dir,
                              std::span<const std::string> names, uint32_t keep) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ListedCheckpoint> all, list_checkpoints(dir));
  std::vector<std::string> newest_first;
  for (auto it = all.rbegin(); it != all.rend(); ++it)
    if (it->status.is_ok()) newest_first.push_back(it->info.name);
  const size_t kept = std::min<size_t>(std::max<uint32_t>(keep, 2), newest_first.size());
  const std::set<std::string> safe(newest_first.begin(),
                                   newest_first.begin() + static_cast<std::ptrdiff_t>(kept));
  int deleted = 0;
  for (const std::string& name : names) {
    const bool there = std::any_of(all.begin(), all.end(), [&](const ListedCheckpoint& item) {
      return checkpoint_name(item.name) == name;
    });
    if (!there || safe.count(name) != 0) continue;
    // First out of sight in one act (K1), then file by file.
    const std::string grave = path_join(dir, kTemporaryPrefix + name);
    LOCKSTEP_RETURN_IF_ERROR(files.remove_directory(grave));
    LOCKSTEP_RETURN_IF_ERROR(files.rename(path_join(dir, name), grave));
    LOCKSTEP_RETURN_IF_ERROR(files.remove_directory(grave));
    ++deleted;
  }
  if (deleted > 0) LOCKSTEP_RETURN_IF_ERROR(files.sync_directory(dir));
  return deleted;
}

Status remove_leftovers(FileOps& files, const std::string& dir, Generation before) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, entries(dir));
  for (const std::string& name : names) {
    std::string_view rest = name;
    if (!take(rest, kTemporaryPrefix)) continue;
    const auto parsed = parse_checkpoint_name(rest);
    if (parsed && parsed->generation < before)
      LOCKSTEP_RETURN_IF_ERROR(files.remove_directory(path_join(dir, name)));
  }
  return Status::ok();
}

}  // namespace lockstep
