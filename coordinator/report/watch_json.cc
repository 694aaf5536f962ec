#include "coordinator/report/watch_json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "coordinator/report/json_values.h"

namespace lockstep::coordinator {
namespace {

using nlohmann::json;

json ratio(double part, double whole) {
  return whole > 0 ? json_number(part / whole) : json(nullptr);
}

// At most `points` of them, evenly chosen, the newest always.
json evals_json(const std::map<Step, EvalEntry>& evals, size_t points) {
  json out = json::object();
  for (const char* column : {"step", "accuracy", "loss", "top5", "lr"}) out[column] = json::array();
  const size_t every = (evals.size() + points - 1) / std::max<size_t>(points, 1);
  size_t left = evals.size();
  for (const auto& [step, eval] : evals) {
    if (--left % std::max<size_t>(every, 1) != 0) continue;
    out["step"].push_back(step);
    out["accuracy"].push_back(eval.no_accuracy ? json(nullptr)
                                               : ratio(static_cast<double>(eval.correct),
                                                       static_cast<double>(eval.samples)));
    for (const MetricValue& metric : eval.metrics)
      out["metrics"][metric.name].push_back(json_number(metric.value));
    out["loss"].push_back(json_number(eval.loss));
    out["top5"].push_back(
        eval.top5 ? ratio(static_cast<double>(*eval.top5), static_cast<double>(eval.samples))
                  : json(nullptr));
    out["lr"].push_back(eval.lr ? json_number(*eval.lr) : json(nullptr));
  }
  return out;
}

}  // namespace

std::string history_json(const Curves& curves, const std::map<Step, EvalEntry>& evals,
                         uint32_t turns, size_t points) {
  json out;
  for (const char* column : {"first", "loss", "loss_min", "loss_max", "lr", "samples_per_second"}) {
    out[column] = json::array();
  }
  const std::vector<CurveBin> bins = curves.thinned(points);
  for (const CurveBin& bin : bins) {
    const bool has_loss = bin.finite > 0;
    out["first"].push_back(bin.first);
    out["loss"].push_back(ratio(bin.loss_sum, static_cast<double>(bin.finite)));
    out["loss_min"].push_back(has_loss ? json_number(bin.loss_min) : json(nullptr));
    out["loss_max"].push_back(has_loss ? json_number(bin.loss_max) : json(nullptr));
    out["lr"].push_back(json_number(bin.lr));
    out["samples_per_second"].push_back(
        ratio(static_cast<double>(bin.samples) * 1e6, static_cast<double>(bin.wall_us) * turns));
  }
  const uint64_t width = bins.size() > 1 ? bins[1].first - bins[0].first : curves.width();
  out["width"] = width;
  out["steps"] = bins.empty() ? 0 : bins.back().first + bins.back().steps;
  out["evals"] = evals_json(evals, points);
  return json_text(out);
}

std::string events_json(const Timeline& timeline, size_t limit) {
  json out = {{"events", json::array()}, {"generations", json::array()}};
  const auto& events = timeline.events();
  for (auto it = events.rbegin(); it != events.rend() && out["events"].size() < limit; ++it) {
    out["events"].push_back({{"time", it->time},
                             {"level", it->level},
                             {"event", it->event},
                             {"message", it->message},
                             {"generation", it->generation},
                             {"step", it->step}});
  }
  const auto& generations = timeline.generations();
  for (auto it = generations.rbegin();
       it != generations.rend() && out["generations"].size() < limit; ++it) {
    out["generations"].push_back({{"time", it->time},
                                  {"generation", it->generation},
                                  {"step", it->step},
                                  {"what", it->what},
                                  {"why", it->why}});
  }
  return json_text(out);
}

size_t query_number(std::string_view query, std::string_view key, size_t otherwise, size_t most) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != key) continue;
    const std::string_view text = pair.substr(equals + 1);
    size_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return is_whole ? std::clamp<size_t>(value, 1, most) : otherwise;
  }
  return otherwise;
}

}  // namespace lockstep::coordinator
