#include "worker/inference/score_parts.h"

#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "comm/base/text/shallow_json.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr int kPartDepth = 4;

uint64_t bits_of(double value) {
  return std::bit_cast<uint64_t>(value);
}

Json json_of(const ScoreSums& sums) {
  Json out = {bits_of(sums.loss), bits_of(sums.weight), bits_of(sums.squared),
              bits_of(sums.absolute)};
  for (const double metric : sums.metrics) out.push_back(bits_of(metric));
  return out;
}

ScoreSums sums_of(const Json& json) {
  const auto value = [&](size_t i) { return std::bit_cast<double>(json.at(i).get<uint64_t>()); };
  ScoreSums sums{.loss = value(0),
                 .weight = value(1),
                 .squared = value(2),
                 .absolute = value(3),
                 .metrics = {}};
  for (size_t i = 4; i < json.size(); ++i) sums.metrics.push_back(value(i));
  return sums;
}

// Pairs of place and count: most places of a large matrix are empty.
Json json_of_matrix(const std::vector<uint64_t>& confusion) {
  Json out = Json::array();
  for (size_t i = 0; i < confusion.size(); ++i) {
    if (confusion[i] == 0) continue;
    out.push_back(i);
    out.push_back(confusion[i]);
  }
  return out;
}

PartScores part_of(const Json& json) {
  PartScores part;
  Scores& scores = part.scores;
  json.at("samples").get_to(scores.samples);
  json.at("labels").get_to(scores.labels);
  json.at("correct").get_to(scores.correct);
  json.at("top5").get_to(scores.top5);
  json.at("has_accuracy").get_to(scores.has_accuracy);
  json.at("has_top5").get_to(scores.has_top5);
  json.at("has_weights").get_to(scores.has_weights);
  json.at("has_errors").get_to(scores.has_errors);
  json.at("is_of_tokens").get_to(scores.is_of_tokens);
  json.at("metric_names").get_to(scores.metric_names);
  json.at("class_names").get_to(scores.class_names);
  scores.confusion.resize(scores.class_names.size() * scores.class_names.size());
  const Json& counts = json.at("confusion");
  for (size_t i = 0; i + 1 < counts.size(); i += 2)
    scores.confusion.at(counts[i].get<size_t>()) = counts[i + 1].get<uint64_t>();
  for (const Json& batch : json.at("batches")) part.batches.push_back(sums_of(batch));
  return part;
}

}  // namespace

std::string part_text(const PartScores& part) {
  const Scores& scores = part.scores;
  Json out = {{"samples", scores.samples},
              {"labels", scores.labels},
              {"correct", scores.correct},
              {"top5", scores.top5},
              {"has_accuracy", scores.has_accuracy},
              {"has_top5", scores.has_top5},
              {"has_weights", scores.has_weights},
              {"has_errors", scores.has_errors},
              {"is_of_tokens", scores.is_of_tokens},
              {"metric_names", scores.metric_names},
              {"class_names", scores.class_names},
              {"confusion", json_of_matrix(scores.confusion)},
              {"batches", Json::array()}};
  for (const ScoreSums& batch : part.batches) out["batches"].push_back(json_of(batch));
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<PartScores> parse_part(std::string_view text) {
  try {
    return part_of(parse_shallow_json(text, kPartDepth));
  } catch (const std::exception& error) {
    return Status(Code::kInternal,
                  std::string("the scores of a part cannot be read: ") + error.what());
  }
}

Scores joined(const std::vector<PartScores>& parts) {
  Scores all = parts.front().scores;
  all.sums = {};
  all.sums.metrics.resize(all.metric_names.size());
  for (const PartScores& part : parts) {
    for (const ScoreSums& batch : part.batches) all.sums.add(batch);
    if (&part == &parts.front()) continue;
    all.correct += part.scores.correct;
    all.top5 += part.scores.top5;
    for (size_t i = 0; i < all.confusion.size(); ++i) all.confusion[i] += part.scores.confusion[i];
  }
  return all;
}

}  // namespace lockstep
