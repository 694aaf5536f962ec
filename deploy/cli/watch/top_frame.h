// One frame of `lockstep top`: a run as lines of text that fit a terminal. top_command.cc draws it.
//
// Text from other machines, such as names of nodes, loses its control characters, so that it cannot
// command the terminal.
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

// The answers of /api/v1/status, history and events. The frame leaves out what is missing.
struct TopData {
  nlohmann::json status;
  nlohmann::json history;
  nlohmann::json events;
  std::string note;  // what to know of the frame as a whole; empty: nothing
};

// At most style.height lines of fewer than style.width columns.
std::vector<std::string> top_frame(const TopData& data, const TopStyle& style);

// A sparkline of `values` between the least and the greatest, the newest at the right; null is a
// gap.
std::string sparkline(const nlohmann::json& values, size_t width, bool unicode);

// `text` without control characters, cut to `width` columns.
std::string printable(const std::string& text, size_t width);

}  // namespace lockstep
