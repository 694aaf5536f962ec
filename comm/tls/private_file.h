// Files that hold secrets, and files that are read again when they change.
//
// Thread-safety: free functions. A FileWatch needs its owner's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::rpc {

enum class Links { kRefused, kFollowed };  // mounted secrets are symbolic links

// The whole file, if only our user may read it. `what` names it in messages ("token file").
// kNoInput if it is not there. kConfig, with the command that mends it, if it is not ours or others
// may read it.
Result<std::string> read_private_file(const std::string& path, const std::string& what,
                                      size_t limit_bytes, Links links);

// Tells when somebody has replaced or written files. Looks at most once in limits::kSecretsLookMs,
// unless the caller asks for a look.
class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths);

  // True once for each change since the last call, or since the construction.
  bool has_changed(int64_t now_ms, bool look_now = false);

 private:
  struct Look {
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t seconds = 0, nanoseconds = 0;
    bool operator==(const Look&) const = default;
  };
  std::vector<Look> look() const;

  std::vector<std::string> paths_;
  std::vector<Look> last_;
  int64_t looked_ms_ = 0;
};

}  // namespace lockstep::rpc
