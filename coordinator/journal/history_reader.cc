#include "coordinator/journal/history_reader.h"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "coordinator/journal/history.h"

namespace lockstep::coordinator {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

double real_of(const Json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_number() ? it->get<double>() : kNotANumber;
}

uint64_t whole_of(const Json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

}  // namespace

StepEntry unknown_step(Step step) {
  StepEntry entry;
  entry.step = step;
  entry.loss = kNotANumber;
  entry.lr = kNotANumber;
  return entry;
}

std::vector<StepEntry> read_history(const std::string& path, Step limit) {
  std::vector<StepEntry> steps;
  std::ifstream file(path);
  for (std::string text; steps.size() < limit && std::getline(file, text);) {
    const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    const bool is_next = line.is_object() && whole_of(line, "step") == steps.size() + 1;
    if (!is_next || file.eof()) break;  // H2: a line ends with a newline
    StepEntry& entry = steps.emplace_back(unknown_step(steps.size()));
    entry.epoch = static_cast<Epoch>(whole_of(line, "epoch"));
    entry.samples = whole_of(line, "samples");
    entry.loss = real_of(line, "loss");
    entry.lr = real_of(line, "lr");
    const auto skipped = line.find("skipped");
    entry.skipped = skipped != line.end() && skipped->is_boolean() && skipped->get<bool>();
    if (const auto metrics = line.find("metrics"); metrics != line.end() && metrics->is_object())
      for (const auto& [name, value] : metrics->items())
        entry.metrics.push_back({name, real_of(*metrics, name.c_str())});
    // Not as it was written: nothing in the line is believed.
    if (history_line(entry) != text + "\n") entry = unknown_step(entry.step);
  }
  return steps;
}

}  // namespace lockstep::coordinator
