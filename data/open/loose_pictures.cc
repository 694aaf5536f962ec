#include "data/open/loose_pictures.h"

#include <filesystem>
#include <system_error>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/formats/images/image_tree.h"
#include "data/formats/images/look_at_image.h"
#include "data/image/decode.h"
#include "data/image/image_info.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "unlabelled";
constexpr char kOnlyClass[] = "images";

Status cannot_link(const std::string& link, const std::error_code& error) {
  return {Code::kInternal, "cannot make " + link + ": " + error.message() +
                               "; make room for temporary files, or name a directory with room by "
                               "TMPDIR"};
}

// Names below `root`, of pictures and of links with a picture's name that lead nowhere.
Status find_pictures(const std::string& root, const std::string& below, int depth,
                     std::vector<std::string>* names) {
  if (depth > kTreeDepth)
    return {Code::kBadData, root + "/" + below + " lies too deep; name a directory further down"};
  LOCKSTEP_ASSIGN_OR_RETURN(const ImageNames here, names_in(root + "/" + below));
  for (const std::string& name : here.images) names->push_back(below + name);
  for (const std::string& name : here.lost)
    if (has_image_ending(name)) names->push_back(below + name);
  for (const std::string& name : here.directories)
    LOCKSTEP_RETURN_IF_ERROR(find_pictures(root, below + name + "/", depth + 1, names));
  return Status::ok();
}

// The error of decoding; empty if there is none.
std::string wrong_pixels(const std::string& path, const Extent& extent) {
  const auto text = read_file(path, limits::kEncodedBytes);
  if (!text.is_ok()) return text.status().message();
  const DecodeRequest request{
      .info = {static_cast<ImageCodec>(extent.codec), extent.width, extent.height, extent.channels},
      .box = {0, 0, extent.width, extent.height},
      .channels = extent.channels};
  DecodedPart pixels;
  return decode({reinterpret_cast<const uint8_t*>(text->data()), text->size()}, request, pixels)
      .message();
}

// The picture's fault, without the picture's name; empty if there is none.
std::string wrong_with(const std::string& directory, const std::string& name) {
  IndexContent::Path file;
  file.name = name;
  Extent extent;
  const std::string path = directory + "/" + name;
  const std::string message = look_at_image(directory, file, extent, nullptr).message();
  if (message.empty()) return wrong_pixels(path, extent);
  const size_t at = message.find(path);
  if (at == std::string::npos) return message;
  const size_t rest = message.find_first_not_of(": ", at + path.size());
  return at == 0 && rest != std::string::npos ? message.substr(rest) : message;
}

Status link_each(const std::string& path, const std::string& link, LoosePictures* made) {
  std::vector<std::string> names;
  LOCKSTEP_RETURN_IF_ERROR(find_pictures(path, "", 0, &names));
  std::error_code error;
  size_t linked = 0;
  for (const std::string& name : names) {
    if (const std::string why = wrong_with(path, name); !why.empty()) {
      made->unread.push_back({path + "/" + name, why});
      continue;
    }
    const fs::path to = link + "/" + name;
    fs::create_directories(to.parent_path(), error);
    if (!error) fs::create_symlink(fs::absolute(path + "/" + name), to, error);
    if (error) return cannot_link(to.string(), error);
    ++linked;
  }
  if (linked > 0 || made->unread.empty()) return Status::ok();
  return {Code::kBadData, made->unread[0].path + " " + made->unread[0].why +
                              ", and no other picture below " + path +
                              " can be read; name other pictures"};
}

}  // namespace

Result<LoosePictures> link_pictures(const std::string& path, const std::string& into, bool looks) {
  LoosePictures made{.folder = into + "/" + kFolder, .shown_for = {}, .unread = {}};
  const std::string link = made.folder + "/" + kOnlyClass;
  made.shown_for = link;
  std::error_code error;
  fs::create_directory(made.folder, error);
  if (error) return cannot_link(made.folder, error);
  if (fs::is_directory(path, error)) {
    if (looks) {
      LOCKSTEP_RETURN_IF_ERROR(link_each(path, link, &made));
      return made;
    }
    fs::create_directory_symlink(fs::absolute(path), link, error);
    return error ? Result<LoosePictures>(cannot_link(link, error)) : made;
  }
  if (!fs::exists(path, error))
    return Status(Code::kNoInput,
                  path + " is not there; name a picture or a directory of pictures");
  made.shown_for += "/" + fs::path(path).filename().string();
  fs::create_directory(link, error);
  if (!error) fs::create_symlink(fs::absolute(path), made.shown_for, error);
  return error ? Result<LoosePictures>(cannot_link(made.shown_for, error)) : made;
}

}  // namespace lockstep::data
