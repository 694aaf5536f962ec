// One frame of `lockstep top`: a run as lines of text that fit a terminal. Pure text; who draws it
// is top_command.cc.
//
// What comes from elsewhere, such as names of nodes, is printed without control characters, so that
// it cannot command the terminal.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep {

struct TopStyle {
  size_t width = 80;
  size_t height = 24;
  bool unicode = true;
};

// As /api/v1/status, history and events give them; what is missing in them is left out.
struct TopData {
  nlohmann::json status;
  nlohmann::json history;
  nlohmann::json events;
};

// At most style.height lines of fewer than style.width columns.
std::vector<std::string> top_frame(const TopData& data, const TopStyle& style);

// `values` scaled between their least and greatest, the newest at the right; null is a gap.
std::string sparkline(const nlohmann::json& values, size_t width, bool unicode);

// Without control characters, at most `width` columns.
std::string printable(const std::string& text, size_t width);

}  // namespace lockstep
