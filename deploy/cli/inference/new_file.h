// Gives a finished file its name, unless another file has that name meanwhile.
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

// Both names are in one directory. kUsage if there is a file `to` already, kInternal if the
// directory cannot be written; `from` stays then.
Status publish_new_file(const std::string& from, const std::string& to);

}  // namespace lockstep
