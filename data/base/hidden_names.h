// Names of files that systems leave beside data. No lister of a data set takes them.
//
//   names that begin with a dot    hidden files; macOS's "._train.bin", Jupyter's checkpoints
//   kLeftBySystems                 archives of macOS, Python, Windows, NAS devices, file systems
//
// Lockstep takes a path that the user names, whatever its name.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::data {

inline constexpr std::array<std::string_view, 10> kLeftBySystems = {
    "__MACOSX",   "__pycache__", "@eaDir",      "#recycle",    "$RECYCLE.BIN",
    "lost+found", "Thumbs.db",   "ehthumbs.db", "desktop.ini", "System Volume Information"};

// `name`: of a file or directory, without a slash.
inline bool is_hidden(std::string_view name) {
  const bool has_dot = name.starts_with('.') && name != "." && name != "..";
  return has_dot ||
         std::find(kLeftBySystems.begin(), kLeftBySystems.end(), name) != kLeftBySystems.end();
}

// Whether a component of the path is hidden.
inline bool lies_hidden(std::string_view path) {
  for (;;) {
    const size_t slash = path.find('/');
    if (is_hidden(path.substr(0, slash))) return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace lockstep::data
