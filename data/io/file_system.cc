#include "data/io/file_system.h"

#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <iterator>

namespace lockstep::data {
namespace {

constexpr uint64_t kRemote[] = {
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB2
    0x65735546,  // FUSE, and virtiofs
    0x0BD00BD0,  // Lustre
    0x00C36400,  // Ceph
    0x01021997,  // 9P
    0x5346414F,  // AFS
    0x6B414653,  // the kernel's AFS
    0x73757245,  // Coda
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x20030528,  // OrangeFS
    0xAAD7AAEA,  // Panasas
    0x786F4256,  // VirtualBox's shared folders
};

}  // namespace

std::optional<DiskRoom> disk_room(const std::string& path) {
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return std::nullopt;
  return DiskRoom{uint64_t{disk.f_blocks} * disk.f_frsize, uint64_t{disk.f_bavail} * disk.f_frsize};
}

bool is_remote_file_system(uint64_t magic) {
  return std::find(std::begin(kRemote), std::end(kRemote), magic) != std::end(kRemote);
}

bool is_on_remote_file_system(const std::string& path) {
  struct statfs info {};
  // 32 bits of a magic number, which some machines have as a signed one.
  return ::statfs(path.c_str(), &info) == 0 &&
         is_remote_file_system(static_cast<uint32_t>(info.f_type));
}

}  // namespace lockstep::data
