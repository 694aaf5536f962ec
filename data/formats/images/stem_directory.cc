#include "data/formats/images/stem_directory.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "data/base/file_errors.h"
#include "data/base/thread_team.h"
#include "data/files/split_directory.h"
#include "data/formats/images/image_tree.h"

namespace lockstep::data {
namespace {

bool is_there(const std::string& directory) {
  std::error_code error;
  return std::filesystem::is_directory(directory, error);
}

std::string of_split(const std::string& directory, Split split) {
  return has_split_directories(directory) ? split_directory(directory, split) : directory;
}

Status no_such_directory(const std::string& path, const std::string& name) {
  std::string others;
  if (const auto names = names_in(path); names.is_ok())
    for (const std::string& one : names->directories) others += (others.empty() ? "" : ", ") + one;
  return {Code::kNoInput, path + " has no directory " + name + " with files of this name" +
                              (others.empty() ? "" : " (it has " + others + ")") +
                              "; data.inputs names the directory of the images, which is images "
                              "without the key, and data.targets those of the masks"};
}

}  // namespace

std::string_view stem_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(0, dot);
}

Result<std::string> find_stem_directory(const std::string& path, const std::string& name,
                                        Split split) {
  if (!is_there(path)) return Status(Code::kNoInput, "data directory " + path + " does not exist");
  const std::string root = of_split(path, split);
  const bool leads_away = name.empty() || name.front() == '/' || name == ".." ||
                          name.starts_with("../") || name.find("/../") != std::string::npos;
  if (leads_away || !is_there(root + "/" + name)) return no_such_directory(root, name);
  return of_split(root + "/" + name, split);
}

bool has_stem_splits(const std::string& path) {
  if (has_split_directories(path)) return true;
  const auto names = names_in(path);
  return names.is_ok() && std::any_of(names->directories.begin(), names->directories.end(),
                                      [&](const std::string& name) {
                                        return has_split_directories(path + "/" + name);
                                      });
}

Result<IndexContent> look_at_stems(const std::string& directory, PictureKind kind, uint32_t threads,
                                   const ProgressFn& progress, source::RemoteFiles* far,
                                   DamagedFiles& damaged) {
  IndexContent content;
  ImageTree found;
  LOCKSTEP_RETURN_IF_ERROR(walk_images(directory, "", 0, found));
  const std::string what = kind == PictureKind::kMask ? "masks" : "images";
  if (found.images.empty()) {
    const std::string others = left_out_text(found.left_out);
    return Status(Code::kNoInput,
                  directory + " holds no " + what + "; put " +
                      (kind == PictureKind::kMask ? "PNG" : "JPEG, PNG, WebP or BMP") +
                      " files there" + (others.empty() ? "" : " (it has " + others + ")"));
  }
  LOCKSTEP_RETURN_IF_ERROR(check_left_out(directory, found.left_out, found.images.size()));
  std::sort(found.images.begin(), found.images.end(),
            [](const std::string& a, const std::string& b) {
              return std::pair(stem_of(a), std::string_view(a)) <
                     std::pair(stem_of(b), std::string_view(b));
            });
  const auto twice = std::adjacent_find(
      found.images.begin(), found.images.end(),
      [](const std::string& a, const std::string& b) { return stem_of(a) == stem_of(b); });
  if (twice != found.images.end())
    return bad(directory + " has both " + *twice + " and " + *std::next(twice) +
               ", which would be one sample; keep one of them, or give them different names");
  content.notes.left_out = std::move(found.left_out);
  content.classes = {"0"};
  // Stamped before the files: a file that comes during the look then makes the index outdated.
  for (const std::string& name : found.directories) {
    LOCKSTEP_ASSIGN_OR_RETURN(IndexContent::Path stamp, stamp_of(directory, name));
    content.sources.push_back(std::move(stamp));
  }
  content.files.resize(found.images.size());
  content.extents.resize(found.images.size());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "index"));
  ProgressOfMany shown("looking at the " + what + " of " + directory, found.images.size(),
                       progress);
  DamagedFiles found_damaged;
  LOCKSTEP_RETURN_IF_ERROR(team->run(found.images.size(), [&](uint32_t thread, uint64_t i) {
    content.extents[i].file = static_cast<uint32_t>(i);
    content.files[i].name = found.images[i];
    shown.one_done(thread);
    return found_damaged.take(
        i, look_at_image(directory, content.files[i], content.extents[i], far, kind));
  }));
  LOCKSTEP_RETURN_IF_ERROR(leave_out_damaged(found_damaged, damaged, content));
  return content;
}

}  // namespace lockstep::data
