// Copies the journal for a new seat. The coordinator of the old one is lost, or maybe only cut off.
//
// Thread-safety: free function.
#pragma once

#include <optional>
#include <string>

#include "comm/base/status.h"
#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

// `to` gets every commit of `from`, and is whole as soon as it exists. `from` does not change. A
// commit that another process writes at the same time may be in the copy or not. `head` was read
// before `from` was chosen (journal_head.h). kNoInput if there is no `from`. kBadData if it is
// still damaged after several reads, or lacks the commit that `head` tells of: then `to` is as it
// was.
Status copy_journal(const std::string& from, const std::string& to,
                    const std::optional<JournalMark>& head);

}  // namespace lockstep::coordinator
