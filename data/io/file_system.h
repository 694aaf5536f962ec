// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::data {

// By what statfs tells of it (statfs(2)): NFS, SMB, FUSE, Lustre, Ceph and their like, whose reads
// wait for another machine or another process.
bool is_remote_file_system(uint64_t magic);

// Of the file that is there; false where that cannot be told.
bool is_on_remote_file_system(const std::string& path);

}  // namespace lockstep::data
