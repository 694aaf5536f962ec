#include "data/formats/images/image_folder.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/base/hidden_names.h"
#include "data/base/thread_team.h"
#include "data/dataset/weigh_files.h"
#include "data/files/split_directory.h"
#include "data/formats/format_rows.h"
#include "data/formats/images/encoded_format.h"
#include "data/formats/images/image_tree.h"
#include "data/formats/images/look_at_image.h"
#include "data/image/image_info.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

bool has_images(const std::string& directory) {
  std::error_code error;
  fs::recursive_directory_iterator it(directory, fs::directory_options::follow_directory_symlink,
                                      error);
  size_t looked = 0;
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_hidden(name)) {
      it.disable_recursion_pending();
      continue;
    }
    if (it.depth() > 0 && has_image_ending(name)) return true;
    if (++looked > limits::kDataDirectoryEntries) return false;
    if (it.depth() >= 3) it.disable_recursion_pending();
  }
  return false;
}

Status no_images(const std::string& directory, const FilesLeftOut& left) {
  const std::string others = left_out_text(left);
  return {Code::kNoInput, directory +
                              " holds no images; make a directory for each class, with JPEG, PNG, "
                              "WebP or BMP files in it" +
                              (others.empty() ? "" : " (it has " + others + ")")};
}

}  // namespace

// Whether an image lies in it, at any depth.
bool holds_image(const std::string& directory, int depth) {
  const auto names = depth > kTreeDepth ? Result<ImageNames>(ImageNames()) : names_in(directory);
  if (!names.is_ok()) return false;
  if (!names->images.empty()) return true;
  return std::any_of(
      names->directories.begin(), names->directories.end(),
      [&](const std::string& name) { return holds_image(directory + "/" + name, depth + 1); });
}

// The directories of the first names, in quotes.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? text + " ..." : text;
}

bool is_image_folder(const std::string& path) {
  return has_images(has_split_directories(path) ? split_directory(path, Split::kTrain) : path);
}

Result<std::string> find_image_folder(const std::string& path, Split split) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return Status(Code::kNoInput, "data directory " + path + " does not exist");
  return has_split_directories(path) ? split_directory(path, split) : path;
}

std::string doubt_of_classes(const std::string& path) {
  const auto directory = find_image_folder(path, Split::kTrain);
  const auto names =
      directory.is_ok() ? names_in(*directory) : Result<ImageNames>(directory.status());
  if (!names.is_ok() || names->directories.empty()) return "";
  const std::vector<std::string>& classes = names->directories;
  const std::string advice =
      "; a class is a directory directly below the one that is named, so name " + *directory + "/" +
      classes.front() +
      " if that holds the classes, or set data.train.format to image_folder if "
      "these are the classes";
  const std::string which = *directory + " has the class directories " + some_of(classes);
  if (std::all_of(classes.begin(), classes.end(), is_named_like_split))
    return which + ", which are names of splits" + advice;
  if (classes.size() == 1) return *directory + " has one class only, " + classes.front() + advice;
  size_t filled = 0;
  std::string only;
  for (const std::string& name : classes) {
    if (!holds_image(*directory + "/" + name, 1)) continue;
    if (++filled > 1) return "";
    only = name;
  }
  if (filled == 0) return "";
  return which + ", and only " + only + " has images" + "; name " + *directory + "/" + only +
         " if that holds the classes, or set "
         "data.train.format to image_folder if these are the classes";
}

Result<IndexContent> look_at_image_folder(const std::string& directory, uint32_t threads,
                                          const ProgressFn& progress, source::RemoteFiles* far,
                                          DamagedFiles& damaged) {
  IndexContent content;
  ImageTree found;
  LOCKSTEP_ASSIGN_OR_RETURN(ImageNames root, names_in(directory));
  leave_out(root, "", found.left_out);
  for (const std::string& name : root.images)
    found.left_out.add("image outside of the class directories", name, /*may_be_data=*/true);
  content.classes = std::move(root.directories);
  if (content.classes.size() > size_t{limits::kLabel} + 1)
    return Status(Code::kBadData, directory + " holds " + std::to_string(content.classes.size()) +
                                      " directories, but there may be at most " +
                                      std::to_string(limits::kLabel + 1) + " classes");
  found.directories.emplace_back();  // the root: a new or removed class changes its time
  for (uint32_t label = 0; label < content.classes.size(); ++label) {
    const size_t first = found.images.size();
    LOCKSTEP_RETURN_IF_ERROR(walk_images(directory, content.classes[label], 1, found));
    std::sort(found.images.begin() + static_cast<ptrdiff_t>(first), found.images.end());
    content.extents.resize(found.images.size());
    for (size_t i = first; i < found.images.size(); ++i) content.extents[i].label = label;
  }
  if (found.images.empty()) return no_images(directory, found.left_out);
  LOCKSTEP_RETURN_IF_ERROR(check_left_out(directory, found.left_out, found.images.size()));
  content.notes.left_out = std::move(found.left_out);
  // Stamped before the files: a file that comes during the look then makes the index outdated.
  for (const std::string& name : found.directories) {
    LOCKSTEP_ASSIGN_OR_RETURN(IndexContent::Path stamp, stamp_of(directory, name));
    content.sources.push_back(std::move(stamp));
  }
  content.files.resize(found.images.size());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "index"));
  ProgressOfMany shown("looking at the images of " + directory, found.images.size(), progress);
  DamagedFiles found_damaged;
  LOCKSTEP_RETURN_IF_ERROR(team->run(found.images.size(), [&](uint32_t thread, uint64_t i) {
    content.extents[i].file = static_cast<uint32_t>(i);
    content.files[i].name = found.images[i];
    shown.one_done(thread);
    return found_damaged.take(i,
                              look_at_image(directory, content.files[i], content.extents[i], far));
  }));
  LOCKSTEP_RETURN_IF_ERROR(leave_out_damaged(found_damaged, damaged, content));
  return content;
}

namespace {

constexpr size_t kImagesWeighed = 4'096;  // enough to outweigh stray files

// Weighs only the first images if there are many.
Evidence weight_of_images(const Listing& directory) {
  const std::string& root = directory.path;
  Evidence evidence;
  std::error_code error;
  fs::recursive_directory_iterator it(root, fs::directory_options::follow_directory_symlink, error);
  size_t looked = 0;
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_hidden(name) || it.depth() > 8) {
      it.disable_recursion_pending();
      continue;
    }
    if (it.depth() == 0 || !has_image_ending(name)) continue;
    add_weight(it->path().string(), it->path().lexically_relative(root).string(), evidence);
    if (++looked == kImagesWeighed) break;
  }
  return evidence;
}

Result<std::string> image_folder_in(const Listing& directory) {
  const bool has_masks = directory.columns.has_fields();
  return named_if(is_image_folder(directory.path), has_masks ? "image_mask" : "image_folder");
}

Result<EncodedSource> find_folder_source(const EncodedRequest& request) {
  EncodedSource source;
  source.format = "image_folder";
  LOCKSTEP_ASSIGN_OR_RETURN(source.directory, find_image_folder(request.path, request.split));
  source.shown_directory = source.directory;
  source.has_class_names = true;
  source.far = request.far;
  source.look = [directory = source.directory, &progress = request.progress, at = source.far](
                    uint32_t threads, DamagedFiles& damaged) {
    return look_at_image_folder(directory, threads, progress, at.get(), damaged);
  };
  return source;
}

}  // namespace

// Its probe also finds image_mask, where a job names fields.
constinit const DataFormat kImageFolderFormat{
    .name = "image_folder",
    .in_directory = {{{DirectoryStep::kLast, image_folder_in, weight_of_images,
                       /*has_tables_beside=*/true}}},
    .find = find_folder_source,
    .has_eval = encoded_has_eval<find_folder_source>,
    .serves_both = unless<encoded_has_eval<find_folder_source>>};

}  // namespace lockstep::data
