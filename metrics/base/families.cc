#include "metrics/base/families.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>

namespace lockstep {

Families::Families(MetricLabels constant)
    : constant_(std::move(constant)), registry_(std::make_unique<prometheus::Registry>()) {}

Families::~Families() = default;

prometheus::Counter& Families::counter(const std::string& name, const std::string& help,
                                       const MetricLabels& labels) {
  return prometheus::BuildCounter()
      .Name(name)
      .Help(help)
      .Labels(constant_)
      .Register(*registry_)
      .Add(labels);
}

prometheus::Gauge& Families::gauge(const std::string& name, const std::string& help,
                                   const MetricLabels& labels) {
  return prometheus::BuildGauge()
      .Name(name)
      .Help(help)
      .Labels(constant_)
      .Register(*registry_)
      .Add(labels);
}

prometheus::Histogram& Families::histogram(const std::string& name, const std::string& help,
                                           const std::vector<double>& bounds) {
  return prometheus::BuildHistogram()
      .Name(name)
      .Help(help)
      .Labels(constant_)
      .Register(*registry_)
      .Add({}, bounds);
}

prometheus::Family<prometheus::Gauge>& Families::gauges(const std::string& name,
                                                        const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Labels(constant_).Register(*registry_);
}

std::string Families::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, registry_->Collect());
  return out.str();
}

void InfoMetric::set(const MetricLabels& labels) {
  std::lock_guard lock(mutex_);
  if (shown_ != nullptr && labels == labels_) return;
  if (shown_ != nullptr) family_.Remove(shown_);
  shown_ = &family_.Add(labels);
  shown_->Set(1);
  labels_ = labels;
}

OptionalGauge::OptionalGauge(Families& families, const std::string& name, const std::string& help,
                             MetricLabels labels)
    : family_(families.gauges(name, help)), labels_(std::move(labels)) {}

void OptionalGauge::set(std::optional<double> value) {
  if (!value) {
    if (shown_ != nullptr) family_.Remove(shown_);
    shown_ = nullptr;
    return;
  }
  if (shown_ == nullptr) shown_ = &family_.Add(labels_);
  shown_->Set(*value);
}

void NamedGauges::set(const std::map<std::string, double>& values) {
  for (const auto& [name, value] : values) family_.Add({{"name", name}}).Set(value);
}

void raise_to(prometheus::Counter& counter, double total) {
  const double missing = total - counter.Value();
  if (missing > 0) counter.Increment(missing);
}

}  // namespace lockstep
