// Scripts that are modules of a package: `lockstep run -m proj.train`, as `python -m` names them.
//
// Thread-safety: free functions, which look at files.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep {

// Where a Python imports a package, or a module of no package, from: its folder or file. Empty:
// that Python has none.
using ImportedFrom = std::function<std::string(const std::string& name)>;

// The file that `python -m MODULE` runs: below `folder`, else where `imported_from` says. kUsage
// for what is no name of a module or cannot be run, kNoInput if there is no such module.
Result<std::string> find_module(const std::string& module, const std::string& folder,
                                const ImportedFrom& imported_from);

// The folder that holds the module's package: "/src" for /src/proj/train.py as proj.train. Empty if
// the file is another module.
std::string folder_of_module(const std::string& path, std::string_view module);

}  // namespace lockstep
