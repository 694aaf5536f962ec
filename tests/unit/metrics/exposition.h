// Reads Prometheus' text format, strictly enough to find what an exporter gets wrong.
#pragma once

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

namespace lockstep::test {

struct ExposedFamily {
  std::string type;
  std::string help;
  std::set<std::string> labels;          // names, of all its series; without `le`
  std::map<std::string, double> series;  // "name{a="b",...}" as written -> value
};

using ExposedFamilies = std::map<std::string, ExposedFamily>;

// Throws std::runtime_error on a line that is neither a comment nor a series of a known family.
inline ExposedFamilies parse_exposition(const std::string& text) {
  ExposedFamilies families;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# HELP ", 0) == 0 || line.rfind("# TYPE ", 0) == 0) {
      const size_t end = line.find(' ', 7);
      ExposedFamily& family = families[line.substr(7, end - 7)];
      (line[2] == 'H' ? family.help : family.type) = line.substr(end + 1);
      continue;
    }
    const size_t space = line.rfind(' ');
    const std::string series = line.substr(0, space);
    const size_t brace = series.find('{');
    std::string name = series.substr(0, brace);
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      const std::string stem = name.substr(0, name.size() - std::string(suffix).size());
      if (name.ends_with(suffix) && families.contains(stem)) name = stem;
    }
    if (space == std::string::npos || !families.contains(name)) {
      throw std::runtime_error("not of a known family: " + line);
    }
    ExposedFamily& family = families[name];
    family.series[series] = std::stod(line.substr(space + 1));
    // Label values of ours hold no comma, brace or quote.
    if (brace == std::string::npos) continue;
    std::istringstream labels(series.substr(brace + 1, series.size() - brace - 2));
    for (std::string label; std::getline(labels, label, ',');) {
      const std::string label_name = label.substr(0, label.find('='));
      if (label_name != "le") family.labels.insert(label_name);
    }
  }
  return families;
}

inline size_t count_series(const ExposedFamilies& families) {
  size_t series = 0;
  for (const auto& [name, family] : families) series += family.series.size();
  return series;
}

}  // namespace lockstep::test
