// Quantities as people read them.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/text/number_text.h"

namespace lockstep {

std::string perplexity_text(double loss);                     // of a mean cross entropy: "34.21"
std::string learning_rate_text(double rate);                  // of learning: "0.002", "4e-09"
std::string duration_text(double seconds);                    // "0:42", "1:02:03", "3 d 4 h"
std::string bytes_text(uint64_t bytes);                       // "26.4 MB"
std::string plural(uint64_t count, const std::string& word);  // "1 worker", "2 workers"

// Columns of a terminal that `text` takes: UTF-8 code points.
size_t columns(const std::string& text);

}  // namespace lockstep
