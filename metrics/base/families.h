// The metric families of one exporter. It makes them with the exporter's constant labels, and
// writes them in Prometheus' text format.
//
// Probes keep references to the results of counter(), gauge() and histogram(), and touch them from
// any thread; the values are atomics. The same name and labels give the same object.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
template <typename T>
class Family;
}  // namespace prometheus

namespace lockstep {

using MetricLabels = std::map<std::string, std::string>;

class Families {
 public:
  // `constant` is on every series of the exporter, e.g. run, node, local_rank.
  explicit Families(MetricLabels constant);
  ~Families();
  Families(const Families&) = delete;
  Families& operator=(const Families&) = delete;

  prometheus::Counter& counter(const std::string& name, const std::string& help,
                               const MetricLabels& labels = {});
  prometheus::Gauge& gauge(const std::string& name, const std::string& help,
                           const MetricLabels& labels = {});
  // `bounds`: upper bounds of the buckets, ascending, without +Inf.
  prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                   const std::vector<double>& bounds);

  // Gauges that come and go. See InfoMetric and OptionalGauge.
  prometheus::Family<prometheus::Gauge>& gauges(const std::string& name, const std::string& help);

  // All families as text, for the Content-Type below.
  std::string text() const;

 private:
  const MetricLabels constant_;
  const std::unique_ptr<prometheus::Registry> registry_;
};

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// Facts as labels: one series of value 1, which a changed fact replaces.
class InfoMetric {
 public:
  InfoMetric(Families& families, const std::string& name, const std::string& help)
      : family_(families.gauges(name, help)) {}
  void set(const MetricLabels& labels);

 private:
  prometheus::Family<prometheus::Gauge>& family_;
  std::mutex mutex_;
  prometheus::Gauge* shown_ = nullptr;
  MetricLabels labels_;
};

// A gauge that exists only while its value is known.
class OptionalGauge {
 public:
  OptionalGauge(Families& families, const std::string& name, const std::string& help,
                MetricLabels labels);
  void set(std::optional<double> value);  // by one thread at a time

 private:
  prometheus::Family<prometheus::Gauge>& family_;
  MetricLabels labels_;
  prometheus::Gauge* shown_ = nullptr;
};

// Gauges of one name whose label `name` tells them apart. They appear when they are first set.
class NamedGauges {
 public:
  NamedGauges(Families& families, const std::string& name, const std::string& help)
      : family_(families.gauges(name, help)) {}
  void set(const std::map<std::string, double>& values);  // by one thread at a time

 private:
  prometheus::Family<prometheus::Gauge>& family_;
};

// Raises `counter` to `total`, for totals that live elsewhere and are read at a scrape. A lower
// total changes nothing, because counters never fall.
void raise_to(prometheus::Counter& counter, double total);

}  // namespace lockstep
