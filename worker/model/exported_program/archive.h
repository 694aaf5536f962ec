// The archive that torch.export.save() writes: a ZIP of one root folder whose files are stored as
// they are. read() verifies checksums.
//
// Messages go on after the archive's name.
// Thread-safety: immutable; any thread may read.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "data/files/zip_entries.h"

namespace lockstep::exported {

class ProgramArchive {
 public:
  // `bytes`: the whole file, kept by `owner`. kBadData if it is damaged, kConfig if it is whole but
  // something else, or of another layout than pt2, version 0, little-endian.
  static Result<ProgramArchive> open(std::span<const uint8_t> bytes,
                                     std::shared_ptr<const void> owner);

  // "model" for models/model.json: the program's name in the archive.
  const std::string& program() const { return program_; }
  // The folder that all files are in.
  const std::string& root() const { return root_; }

  // A file by its name below the root. kBadData if it is not there or its checksum is wrong.
  Result<std::span<const uint8_t>> read(std::string_view name) const;
  Result<std::string_view> read_text(std::string_view name) const;

  std::span<const uint8_t> bytes() const { return bytes_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  // By name below the root.
  const std::map<std::string, data::ZipEntry, std::less<>>& files() const { return files_; }

 private:
  ProgramArchive(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}
  Status list();
  Status check_kind() const;
  Status check_mark(std::string_view file, std::string_view wanted) const;
  Status find_program();

  std::span<const uint8_t> bytes_;
  std::shared_ptr<const void> owner_;
  std::string root_;
  std::string program_;
  std::map<std::string, data::ZipEntry, std::less<>> files_;
};

}  // namespace lockstep::exported
