#include "metrics/probes/rank_probe.h"

#include <prometheus/family.h>
#include <prometheus/gauge.h>

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"

namespace lockstep {
namespace {

// A node names itself. Bytes that are no text would make the whole exposition unreadable.
std::string text_of(std::string name) {
  const auto is_odd = [](char c) { return c < ' ' || c > '~'; };
  std::replace_if(name.begin(), name.end(), is_odd, '?');
  return name;
}

}  // namespace

RankProbe::Measure::Measure(Families& families, const std::string& name, const std::string& what)
    : each_(families.gauges("lockstep_rank_" + name,
                            what + "; beyond " + std::to_string(limits::kRanksShown) +
                                " ranks of the " + std::to_string(limits::kWorstRanksShown) +
                                " highest.")),
      lowest_(families, "lockstep_job_ranks_" + name, what + ", over all ranks.",
              {{"stat", "min"}}),
      median_(families, "lockstep_job_ranks_" + name, what + ", over all ranks.",
              {{"stat", "median"}}),
      highest_(families, "lockstep_job_ranks_" + name, what + ", over all ranks.",
               {{"stat", "max"}}) {}

MetricLabels RankProbe::Measure::labels_of(const RankSample& rank) {
  return {{"rank", std::to_string(rank.rank)},
          {"node", text_of(rank.node)},
          {"local_rank", std::to_string(rank.local_rank)}};
}

void RankProbe::Measure::show(std::vector<Value> values) {
  const auto is_higher = [](const Value& a, const Value& b) { return a.value > b.value; };
  std::optional<double> lowest, median, highest;
  if (!values.empty()) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end(), is_higher);
    median = middle->value;
    const auto [most, least] = std::minmax_element(values.begin(), values.end(), is_higher);
    lowest = least->value;
    highest = most->value;
  }
  lowest_.set(lowest);
  median_.set(median);
  highest_.set(highest);
  if (values.size() > limits::kRanksShown) {
    const auto end = values.begin() + limits::kWorstRanksShown;
    std::partial_sort(values.begin(), end, values.end(), is_higher);
    values.erase(end, values.end());
  }
  show_some(values);
}

void RankProbe::Measure::show_some(const std::vector<Value>& values) {
  auto before = std::exchange(shown_, {});
  for (const Value& value : values) {
    MetricLabels labels = labels_of(*value.of);
    const auto known = before.extract(labels);
    prometheus::Gauge* gauge = known.empty() ? &each_.Add(labels) : known.mapped();
    gauge->Set(value.value);
    shown_.emplace(std::move(labels), gauge);
  }
  for (const auto& [labels, gauge] : before) each_.Remove(gauge);
}

RankProbe::RankProbe(Families& families)
    : slot_seconds_(families, "slot_seconds",
                    "Time of a rank for one slot of a step, without its waits for others, in the "
                    "last 60 s"),
      data_wait_ratio_(
          families, "data_wait_ratio",
          "Share of a rank's time in steps that the rank waits for data, in the last 60 s"),
      recent_slot_seconds_(
          families, "recent_slot_seconds",
          "Time of a rank for one slot of a step, without its waits for others, in "
          "the last 10 s"),
      recent_data_wait_ratio_(
          families, "recent_data_wait_ratio",
          "Share of a rank's time in steps that the rank waits for data, in the last 10 s"),
      silence_seconds_(families, "silence_seconds",
                       "Time since the coordinator last heard from a rank") {}

void RankProbe::show(const std::vector<RankSample>& ranks) {
  const auto values = [&](RankTimesLately RankSample::*span,
                          std::optional<double> RankTimesLately::*what) {
    std::vector<Value> found;
    for (const RankSample& rank : ranks)
      if (const auto& value = (rank.*span).*what) found.push_back({&rank, *value});
    return found;
  };
  std::vector<Value> silences;
  for (const RankSample& rank : ranks) silences.push_back({&rank, rank.silence_seconds});
  slot_seconds_.show(values(&RankSample::minute, &RankTimesLately::slot_seconds));
  data_wait_ratio_.show(values(&RankSample::minute, &RankTimesLately::data_wait_ratio));
  recent_slot_seconds_.show(values(&RankSample::ten_seconds, &RankTimesLately::slot_seconds));
  recent_data_wait_ratio_.show(values(&RankSample::ten_seconds, &RankTimesLately::data_wait_ratio));
  silence_seconds_.show(std::move(silences));
}

}  // namespace lockstep
