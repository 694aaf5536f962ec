// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::data {

struct DiskRoom {
  uint64_t total_bytes;
  uint64_t free_bytes;  // for a process without privileges
};

// The room on the file system of an existing path; nothing if the kernel does not tell.
std::optional<DiskRoom> disk_room(const std::string& path);

// Whether `magic` of statfs(2) is a file system whose reads wait for another machine or process:
// NFS, SMB, FUSE, Lustre, Ceph and others.
bool is_remote_file_system(uint64_t magic);

// Whether the file at `path` lies on such a file system; false if the kernel does not tell.
bool is_on_remote_file_system(const std::string& path);

}  // namespace lockstep::data
