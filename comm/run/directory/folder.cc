#include "comm/run/directory/folder.h"

#include <sys/stat.h>

namespace lockstep::rundir {

void make_folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return;
  (void)::mkdir(path.substr(0, slash).c_str(), 0755);
}

}  // namespace lockstep::rundir
