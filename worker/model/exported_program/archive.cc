#include "worker/model/exported_program/archive.h"

#include <utility>

#include "comm/base/limits.h"
#include "comm/base/text/printable.h"
#include "data/files/gzip.h"

namespace lockstep::exported {
namespace {

constexpr std::string_view kModels = "models/";
constexpr std::string_view kJson = ".json";
constexpr char kExportAgain[] = "export the model again with torch 2.11 and torch.export.save()";

Status damaged_archive(const std::string& what) {
  return {Code::kBadData, "is damaged: " + what + "; copy it again"};
}

Status not_for_us(const std::string& what) {
  return {Code::kConfig, what};
}

}  // namespace

Result<ProgramArchive> ProgramArchive::open(std::span<const uint8_t> bytes,
                                            std::shared_ptr<const void> owner) {
  ProgramArchive archive(bytes, std::move(owner));
  LOCKSTEP_RETURN_IF_ERROR(archive.list());
  LOCKSTEP_RETURN_IF_ERROR(archive.check_kind());
  LOCKSTEP_RETURN_IF_ERROR(archive.check_mark("archive_format", "pt2"));
  LOCKSTEP_RETURN_IF_ERROR(archive.check_mark("archive_version", "0"));
  LOCKSTEP_RETURN_IF_ERROR(archive.check_mark("byteorder", "little"));
  LOCKSTEP_RETURN_IF_ERROR(archive.find_program());
  return archive;
}

Status ProgramArchive::list() {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto entries, data::zip_entries(bytes_, limits::kProgramEntries));
  for (const data::ZipEntry& entry : entries) {
    const size_t slash = entry.name.find('/');
    const std::string root = entry.name.substr(0, slash);
    if (slash == std::string::npos || slash == 0 || (!root_.empty() && root != root_))
      return not_for_us(
          "is a ZIP archive but not a program that torch.export.save() wrote: its "
          "files do not lie in one folder; name the .pt2 file");
    root_ = root;
    if (entry.is_deflated)
      return not_for_us("was packed again: " + printable(entry.name) +
                        " in it is compressed; take the file as torch.export.save() wrote it");
    if (!files_.emplace(entry.name.substr(slash + 1), entry).second)
      return damaged_archive(printable(entry.name) + " is there twice");
  }
  return Status::ok();
}

// Tells by the archive's files which other kind of PyTorch file it is.
Status ProgramArchive::check_kind() const {
  if (files_.contains("archive_format")) return Status::ok();
  if (files_.contains("constants.pkl"))
    return not_for_us(
        "is a TorchScript file; set model.name to torchscript, or export the model "
        "with torch.export.save()");
  if (files_.contains("data.pkl"))
    return not_for_us(
        "holds what torch.save() wrote, such as weights, and no program; export the "
        "model with torch.export.save()");
  return not_for_us(std::string("has the layout of an older PyTorch, or holds no program; ") +
                    kExportAgain);
}

Status ProgramArchive::check_mark(std::string_view file, std::string_view wanted) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string_view found, read_text(file));
  if (found == wanted) return Status::ok();
  if (file == "byteorder")
    return not_for_us("was written on a machine of byte order " + printable(found.substr(0, 16)) +
                      ", and Lockstep reads little; export the model on a little-endian machine");
  return not_for_us("has " + std::string(file) + " " + printable(found.substr(0, 16)) +
                    ", and Lockstep reads " + std::string(wanted) + "; " + kExportAgain);
}

Status ProgramArchive::find_program() {
  for (auto at = files_.lower_bound(kModels); at != files_.end() && at->first.starts_with(kModels);
       ++at) {
    if (!at->first.ends_with(kJson)) continue;
    if (!program_.empty())
      return not_for_us("holds several programs, " + printable(program_) + " and " +
                        printable(at->first) + "; save one program to a file");
    program_ = at->first.substr(kModels.size(), at->first.size() - kModels.size() - kJson.size());
  }
  if (program_.empty()) return not_for_us(std::string("holds no program; ") + kExportAgain);
  if (!files_.contains("data/weights/" + program_ + "_weights_config.json"))
    return not_for_us(std::string("has the layout of an older PyTorch; ") + kExportAgain);
  return Status::ok();
}

Result<std::span<const uint8_t>> ProgramArchive::read(std::string_view name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) return damaged_archive("it lacks " + printable(name));
  const data::ZipEntry& entry = found->second;
  const auto content = bytes_.subspan(entry.offset, entry.stored_bytes);
  if (!data::check_crc32(content, entry.crc).is_ok())
    return damaged_archive("the checksum of " + printable(name) + " in it is wrong");
  return content;
}

Result<std::string_view> ProgramArchive::read_text(std::string_view name) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto content, read(name));
  return std::string_view(reinterpret_cast<const char*>(content.data()), content.size());
}

}  // namespace lockstep::exported
