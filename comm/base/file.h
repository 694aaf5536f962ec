// Reads small files whole, with a limit, and replaces files atomically.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep {

// The whole file. kNoInput if it is not there, kUsage if larger than `limit_bytes`.
Result<std::string> read_file(const std::string& path, size_t limit_bytes);

// Replaces `path` atomically: a reader, or a restart after a crash, sees either the old or the new
// content. Writes a temporary file in the same directory, then fsync, rename, fsync of the
// directory. Never writes through a link that somebody has put there.
Status replace_file(const std::string& path, std::string_view content, int mode = 0644);

// Creates a file that no other process has: removes first what is there under this name, and
// follows no link. Returns a descriptor for writing, or -1 with errno.
int create_own_file(const std::string& path, int mode);

// Syncs a directory, so that a rename in it survives a power cut.
Status sync_directory(const std::string& path);

// "strerror (errno N)" for messages.
std::string errno_text(int error);

}  // namespace lockstep
