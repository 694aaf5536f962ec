// Copies the journal for a new seat. The coordinator of the old one is lost, or maybe only cut off.
//
// Thread-safety: free function.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep::coordinator {

// `to` gets every commit of `from`, and is whole as soon as it exists. `from` does not change. A
// commit that another process writes at the same time may be in the copy or not. kNoInput if there
// is no `from`. kBadData if it is still damaged after several reads.
Status copy_journal(const std::string& from, const std::string& to);

}  // namespace lockstep::coordinator
