#include "tests/sim/world/trace.h"

#include <cstdio>

#include "comm/base/prng.h"

namespace lockstep::sim {

void Trace::add(std::string_view what, std::string_view who, uint64_t a, uint64_t b,
                std::string_view text) {
  // The directory has another name in every run of a seed.
  if (!directory_.empty()) text = text.substr(0, text.find(directory_));
  uint64_t key = mix64(static_cast<uint64_t>(now_ms_()));
  for (const std::string_view part : {what, who, text})
    for (const char c : part) key = mix64(key ^ static_cast<uint8_t>(c));
  hash_ = stream_key({hash_, key, a, b});
  ++events_;

  std::string line = std::to_string(now_ms_()) + " ms  " + std::string(who) + "  " +
                     std::string(what) + " " + std::to_string(a) + " " + std::to_string(b);
  if (!text.empty()) line += "  " + std::string(text);
  if (prints_) std::printf("%s\n", line.c_str());
  last_.push_back(std::move(line));
  if (last_.size() > kKept) last_.pop_front();
}

}  // namespace lockstep::sim
