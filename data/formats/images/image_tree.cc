#include "data/formats/images/image_tree.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "data/base/hidden_names.h"
#include "data/image/image_info.h"

namespace lockstep::data {

namespace fs = std::filesystem;

Result<ImageNames> names_in(const std::string& directory) {
  ImageNames names;
  std::error_code error;
  fs::directory_iterator it(directory, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_hidden(name)) continue;
    std::error_code unreadable;
    if (it->is_directory(unreadable))
      names.directories.push_back(name);
    else if (!it->is_regular_file(unreadable))
      names.lost.push_back(name);
    else
      (has_image_ending(name) ? names.images : names.others).push_back(name);
  }
  if (error)
    return Status(Code::kNoInput, "cannot read directory " + directory + ": " + error.message());
  std::sort(names.directories.begin(), names.directories.end());
  return names;
}

void leave_out(const ImageNames& names, const std::string& below, FilesLeftOut& left) {
  for (const std::string& name : names.others)
    left.add(kind_of_file(name), below + name, has_foreign_image_ending(name));
  for (const std::string& name : names.lost)
    left.add("link that leads nowhere", below + name,
             has_image_ending(name) || has_foreign_image_ending(name));
}

Status walk_images(const std::string& root, const std::string& below, int depth, ImageTree& found) {
  if (depth > kTreeDepth)
    return {Code::kBadData,
            root + "/" + below + " lies " + std::to_string(kTreeDepth) +
                " directories deep; make the tree flatter, or remove a link that leads back"};
  found.directories.push_back(below);
  const std::string prefix = below.empty() ? "" : below + "/";
  LOCKSTEP_ASSIGN_OR_RETURN(const ImageNames names,
                            names_in(below.empty() ? root : root + "/" + below));
  leave_out(names, prefix, found.left_out);
  for (const std::string& name : names.images) found.images.push_back(prefix + name);
  for (const std::string& name : names.directories)
    LOCKSTEP_RETURN_IF_ERROR(walk_images(root, prefix + name, depth + 1, found));
  return Status::ok();
}

}  // namespace lockstep::data
