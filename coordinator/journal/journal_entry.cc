#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {
namespace {

uint64_t wall_us(const wire::PhaseTimes& t) {
  return uint64_t{t.data_wait_us()} + t.forward_us() + t.backward_us() + t.communication_us() +
         t.optimizer_us() + t.other_us();
}

}  // namespace

std::vector<MetricValue> metrics_of(const google::protobuf::RepeatedPtrField<wire::Metric>& field) {
  std::vector<MetricValue> metrics;
  for (const wire::Metric& metric : field) metrics.push_back({metric.name(), metric.value()});
  return metrics;
}

void put_metrics(const std::vector<MetricValue>& metrics,
                 google::protobuf::RepeatedPtrField<wire::Metric>* field) {
  for (const MetricValue& metric : metrics) {
    wire::Metric& added = *field->Add();
    added.set_name(metric.name);
    added.set_value(metric.value);
  }
}

StepEntry step_entry(const wire::StepRecord& record, Generation generation) {
  StepEntry entry;
  entry.generation = generation;
  entry.step = record.step();
  entry.epoch = record.epoch();
  entry.samples = record.samples();
  entry.correct = record.correct();
  entry.loss = record.loss();
  entry.lr = record.lr();
  entry.skipped = record.skipped();
  entry.common_hash = record.common_hash();
  entry.wall_us = wall_us(record.times());
  entry.no_accuracy = record.no_accuracy();
  entry.metrics = metrics_of(record.metrics());
  return entry;
}

EvalEntry eval_entry(const wire::EvalReport& report, Generation generation) {
  EvalEntry entry{generation,       report.step(),    report.epoch(),
                  report.samples(), report.correct(), report.loss()};
  if (report.has_top5()) entry.top5 = report.top5();
  entry.lr = report.lr();
  entry.no_accuracy = report.no_accuracy();
  entry.metrics = metrics_of(report.metrics());
  return entry;
}

}  // namespace lockstep::coordinator
