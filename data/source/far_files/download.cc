#include "data/source/far_files/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "data/source/base/at_once.h"
#include "data/source/cache/chunk_file.h"

namespace lockstep::source {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPieceBytes = 4 * kMib;

struct Piece {
  std::string path;
  std::string id;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

std::vector<Piece> pieces_of(const ObjectInfo& object, const std::string& directory) {
  std::vector<Piece> pieces;
  for (uint64_t offset = 0; offset < object.bytes; offset += kPieceBytes) {
    const std::string number = std::to_string(pieces.size());
    pieces.push_back({directory + "/" + number, object.name + "\n" + object.version + "\n" + number,
                      offset, std::min(kPieceBytes, object.bytes - offset)});
  }
  return pieces;
}

Status cannot_write(const std::string& path) {
  return {Code::kInternal, "cannot write " + path + ": " + errno_text(errno) +
                               "; make room there, or set data.cache_dir to another place"};
}

Status fetch(const ReadPieceFn& read, const Piece& piece) {
  std::vector<uint8_t> bytes(piece.bytes);
  if (read_chunk(piece.path, piece.id, 0, piece.bytes, bytes.data()) == ChunkRead::kRead)
    return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(read(piece.offset, piece.bytes, bytes.data()));
  return write_chunk(piece.path, piece.id, bytes) ? Status::ok() : cannot_write(piece.path);
}

// Writes the pieces to the file, one after another, and removes each: the object would need twice
// its size on the disk. An attempt after a failure here fetches the removed pieces again.
Status put_together(const std::vector<Piece>& pieces, int fd, const std::string& path) {
  std::vector<uint8_t> bytes;
  for (const Piece& piece : pieces) {
    bytes.resize(piece.bytes);
    if (read_chunk(piece.path, piece.id, 0, piece.bytes, bytes.data()) != ChunkRead::kRead)
      return {Code::kInternal,
              piece.path + " does not read back as it was written; is its disk failing?"};
    if (!write_all(fd, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}))
      return cannot_write(path);
    ::unlink(piece.path.c_str());
  }
  return Status::ok();
}

}  // namespace

Status download(const ObjectInfo& object, const ReadPieceFn& read, uint32_t requests,
                const std::string& path, const std::function<void(uint64_t bytes)>& has_read) {
  const std::string directory = path + ".pieces";
  std::error_code error;
  fs::create_directories(directory, error);
  const std::vector<Piece> pieces = pieces_of(object, directory);
  LOCKSTEP_RETURN_IF_ERROR(at_once(requests, pieces.size(), [&](uint64_t i) {
    Status status = fetch(read, pieces[i]);
    if (status.is_ok()) has_read(pieces[i].bytes);
    return status;
  }));
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return cannot_write(path);
  Status status = put_together(pieces, fd, path);
  ::close(fd);
  if (status.is_ok()) fs::remove_all(directory, error);
  return status;
}

}  // namespace lockstep::source
