#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {
namespace {

uint64_t wall_us(const wire::PhaseTimes& t) {
  return uint64_t{t.data_wait_us()} + t.forward_us() + t.backward_us() + t.communication_us() +
         t.optimizer_us() + t.other_us();
}

}  // namespace

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
  return entry;
}

EvalEntry eval_entry(const wire::EvalReport& report, Generation generation) {
  EvalEntry entry{generation,       report.step(),    report.epoch(),
                  report.samples(), report.correct(), report.loss()};
  if (report.has_top5()) entry.top5 = report.top5();
  entry.lr = report.lr();
  return entry;
}

}  // namespace lockstep::coordinator
