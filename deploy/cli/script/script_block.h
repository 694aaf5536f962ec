// The job keys in a script: a block of comments, as PEP 723 has them, which is read without running
// the script.
//
//   # /// lockstep
//   # train: {global_batch: 256, epochs: 3}
//   # ///
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep {

// True for "train.py".
bool is_script_file(std::string_view path);

// The YAML of the block, each line in the line where it stands in the script, for messages. Empty:
// the script has no block, or one without keys. kUsage for a second block, and for one that is not
// closed or not written as above. `name` is for messages ("train.py:7: ...").
Result<std::string> script_block(std::string_view script, const std::string& name);

}  // namespace lockstep
