#include "data/source/cache/chunk_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/descriptors.h"
#include "comm/base/hash.h"

namespace lockstep::source {
namespace {

constexpr uint64_t kBlockBytes = 64 * kKib;
constexpr uint64_t kHashBytes = 32;
constexpr char kMagic[8] = {'L', 'K', 'S', 'C', 'H', 'K', '0', '1'};

struct Footer {
  char magic[8];
  uint64_t bytes;
  char hash[kHashBytes];
};
static_assert(sizeof(Footer) == 48);

uint64_t blocks_of(uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes;
}

std::string footer_hash(std::string_view hashes, const Footer& footer, const std::string& id) {
  Xxh3 hash;
  hash.update(hashes);
  hash.update(&footer, offsetof(Footer, hash));
  hash.update(id);
  return hash.hex();
}

bool read_whole(int fd, uint64_t offset, void* out, uint64_t bytes) {
  return read_at(fd, offset, bytes, out) == static_cast<ssize_t>(bytes);
}

uint64_t bytes_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

bool write_bytes(int fd, const void* data, uint64_t bytes) {
  return write_all(fd, {static_cast<const char*>(data), bytes});
}

// The hashes of its blocks, where the file is a chunk of this id.
bool read_hashes(int file, const std::string& id, Footer& footer, std::string& hashes) {
  const uint64_t size = bytes_of(file);
  if (size < sizeof footer || !read_whole(file, size - sizeof footer, &footer, sizeof footer))
    return false;
  if (std::memcmp(footer.magic, kMagic, sizeof kMagic) != 0 || footer.bytes > size ||
      chunk_file_bytes(footer.bytes) != size)
    return false;
  hashes.resize(blocks_of(footer.bytes) * kHashBytes);
  if (!read_whole(file, footer.bytes, hashes.data(), hashes.size())) return false;
  return footer_hash(hashes, footer, id) == std::string_view(footer.hash, kHashBytes);
}

}  // namespace

uint64_t chunk_file_bytes(uint64_t content_bytes) {
  return content_bytes + blocks_of(content_bytes) * kHashBytes + sizeof(Footer);
}

ChunkRead read_chunk(const std::string& path, const std::string& id, uint64_t offset,
                     uint64_t bytes, uint8_t* out) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return ChunkRead::kMissing;
  Footer footer{};
  std::string hashes;
  if (!read_hashes(file.get(), id, footer, hashes) || offset > footer.bytes ||
      bytes > footer.bytes - offset)
    return ChunkRead::kDamaged;
  const uint64_t first = offset / kBlockBytes;
  const uint64_t end = std::min(blocks_of(offset + bytes) * kBlockBytes, footer.bytes);
  thread_local std::vector<uint8_t> room;
  room.resize(end - first * kBlockBytes);
  if (!read_whole(file.get(), first * kBlockBytes, room.data(), room.size()))
    return ChunkRead::kDamaged;
  for (uint64_t at = 0; at < room.size(); at += kBlockBytes) {
    const std::string hash =
        xxh3_hex(room.data() + at, std::min<uint64_t>(kBlockBytes, room.size() - at));
    const size_t place = (first + at / kBlockBytes) * kHashBytes;
    if (std::memcmp(hash.data(), hashes.data() + place, kHashBytes) != 0)
      return ChunkRead::kDamaged;
  }
  std::memcpy(out, room.data() + (offset - first * kBlockBytes), bytes);
  return ChunkRead::kRead;
}

bool write_chunk(const std::string& path, const std::string& id, std::span<const uint8_t> content) {
  std::string hashes;
  for (uint64_t at = 0; at < content.size(); at += kBlockBytes)
    hashes += xxh3_hex(content.data() + at, std::min<uint64_t>(kBlockBytes, content.size() - at));
  Footer footer{};
  std::memcpy(footer.magic, kMagic, sizeof kMagic);
  footer.bytes = content.size();
  std::memcpy(footer.hash, footer_hash(hashes, footer, id).data(), kHashBytes);
  const std::string part = path + kPartEnding;
  bool is_written = false;
  {
    const Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    is_written = file.is_open() && write_bytes(file.get(), content.data(), content.size()) &&
                 write_bytes(file.get(), hashes.data(), hashes.size()) &&
                 write_bytes(file.get(), &footer, sizeof footer);
  }
  if (is_written && ::rename(part.c_str(), path.c_str()) == 0) return true;
  ::unlink(part.c_str());
  return false;
}

}  // namespace lockstep::source
