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
#include "data/files/split_directory.h"
#include "data/formats/images/look_at_image.h"
#include "data/image/image_info.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 16;  // of directories in each other; a link may lead in a circle

struct Found {
  std::vector<std::string> directories;  // relative, the class's own first
  std::vector<std::string> images;       // relative
};

Status cannot_list(const std::string& path, const std::error_code& error) {
  return {Code::kNoInput, "cannot read directory " + path + ": " + error.message()};
}

// Names in a directory, those of directories and others, but for hidden ones.
Status list(const std::string& path, std::vector<std::string>& directories,
            std::vector<std::string>& files) {
  std::error_code error;
  fs::directory_iterator it(path, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_hidden(name)) continue;
    std::error_code unreadable;  // a link that leads nowhere is no file
    if (it->is_directory(unreadable))
      directories.push_back(name);
    else if (has_image_ending(name) && it->is_regular_file(unreadable))
      files.push_back(name);
  }
  if (error) return cannot_list(path, error);
  std::sort(directories.begin(), directories.end());
  return Status::ok();
}

Status walk(const std::string& root, const std::string& below, int depth, Found& found) {
  if (depth > kDepth)
    return {Code::kBadData,
            root + "/" + below + " lies " + std::to_string(kDepth) +
                " directories deep; make the tree flatter, or remove a link that leads back"};
  found.directories.push_back(below);
  std::vector<std::string> directories;
  std::vector<std::string> files;
  LOCKSTEP_RETURN_IF_ERROR(list(root + "/" + below, directories, files));
  for (const std::string& name : files) found.images.push_back(below + "/" + name);
  for (const std::string& name : directories)
    LOCKSTEP_RETURN_IF_ERROR(walk(root, below + "/" + name, depth + 1, found));
  return Status::ok();
}

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

Status no_images(const std::string& directory) {
  return {Code::kNoInput, directory +
                              " holds no images; make a directory for each class, with *.jpg, "
                              "*.jpeg or *.png files in it"};
}

}  // namespace

bool is_image_folder(const std::string& path) {
  return has_images(has_split_directories(path) ? path + "/train" : path);
}

Result<std::string> find_image_folder(const std::string& path, Split split) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return Status(Code::kNoInput, "data directory " + path + " does not exist");
  return has_split_directories(path) ? split_directory(path, split) : path;
}

Result<IndexContent> look_at_image_folder(const std::string& directory, uint32_t threads,
                                          const ProgressFn& progress, source::RemoteFiles* far) {
  IndexContent content;
  std::vector<std::string> ignored;
  LOCKSTEP_RETURN_IF_ERROR(list(directory, content.classes, ignored));
  if (content.classes.size() > size_t{limits::kLabel} + 1)
    return Status(Code::kBadData, directory + " holds " + std::to_string(content.classes.size()) +
                                      " directories, but there may be at most " +
                                      std::to_string(limits::kLabel + 1) + " classes");
  Found found;
  found.directories.emplace_back();  // the root: a class that comes or goes changes its time
  for (uint32_t label = 0; label < content.classes.size(); ++label) {
    const size_t first = found.images.size();
    LOCKSTEP_RETURN_IF_ERROR(walk(directory, content.classes[label], 1, found));
    std::sort(found.images.begin() + static_cast<ptrdiff_t>(first), found.images.end());
    content.extents.resize(found.images.size());
    for (size_t i = first; i < found.images.size(); ++i) content.extents[i].label = label;
  }
  if (found.images.empty()) return no_images(directory);
  // Before the files: what comes while they are looked at makes the index one of the past.
  for (const std::string& name : found.directories) {
    LOCKSTEP_ASSIGN_OR_RETURN(IndexContent::Path stamp, stamp_of(directory, name));
    content.sources.push_back(std::move(stamp));
  }
  content.files.resize(found.images.size());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "index"));
  ProgressOfMany shown("looking at the images of " + directory, found.images.size(), progress);
  LOCKSTEP_RETURN_IF_ERROR(team->run(found.images.size(), [&](uint32_t thread, uint64_t i) {
    content.extents[i].file = static_cast<uint32_t>(i);
    content.files[i].name = found.images[i];
    shown.one_done(thread);
    return look_at_image(directory, content.files[i], content.extents[i], far);
  }));
  return content;
}

}  // namespace lockstep::data
