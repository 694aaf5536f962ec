// Any bytes as an index, with the hash that they should have: refused, or an index whose extents
// lie in its files.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {
namespace {

void try_index(const std::string& path) {
  const auto index = ExtentIndex::open(path, "/nowhere");
  if (!index.is_ok()) return;
  size_t bytes = index->fingerprint().size();
  for (uint64_t i = 0; i < index->samples(); ++i) {
    const Extent& extent = index->extent(i);
    LOCKSTEP_CHECK(extent.file < index->files() && extent.label < index->classes(),
                   "an extent is of a file and a class");
    LOCKSTEP_CHECK(extent.offset + extent.bytes <= index->file(extent.file).bytes,
                   "an extent lies within its file");
    bytes += index->file_name(extent.file).size() + index->class_name(extent.label).size();
  }
  LOCKSTEP_CHECK(bytes > 0, "it has a fingerprint");
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = ::memfd_create("index", MFD_CLOEXEC);
  LOCKSTEP_CHECK(fd >= 0, "a file in memory");
  const std::string hash = lockstep::xxh3_hex(data, size);
  const bool written = ::write(fd, data, size) == static_cast<ssize_t>(size) &&
                       ::write(fd, hash.data(), hash.size()) == static_cast<ssize_t>(hash.size());
  LOCKSTEP_CHECK(written, "it can be written");
  lockstep::data::try_index("/proc/self/fd/" + std::to_string(fd));
  ::close(fd);
  return 0;
}
