// Computes steps of a script's run again in one process, as `lockstep replay` has planned them
// (worker/replay/script_plan.h), and compares them with the run's records. Ends at the first step
// that differs. If the script asks for a stop, as it may have done in the run, the replay goes on.
//
// Thread-safety: run() on the training thread; took_slot() there, too.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/wire/replay.pb.h"
#include "worker/script/script_engine.h"

namespace lockstep {

class ScriptReplay {
 public:
  struct Report {
    std::string text;  // lines for people
    bool is_same = true;
  };

  // kUsage if there are no steps.
  static Result<wire::ReplayPlan> read(const std::string& path);

  explicit ScriptReplay(wire::ReplayPlan plan) : plan_(std::move(plan)) {}

  const wire::ReplayPlan& plan() const { return plan_; }
  void took_slot(const ls_task& task, double loss);
  // `order`: of the data that the script reads now. kBadData if the data have changed.
  // `has_edges`: the script's loop is over run.epochs().
  Result<Report> run(const RunShape& shape, const OrderSpec& order, ScriptEngine& engine,
                     bool has_edges);

 private:
  struct SlotLoss {
    ls_task task;
    double loss = 0;
  };

  Status load_base(ScriptEngine& engine);
  void compare_machines(const ScriptEngine& engine);
  // Adds differences to the report.
  Status compare(const wire::StepRecord& record, const wire::ReplayStep& recorded,
                 ScriptEngine& engine);
  void tell_evaluations(Step applied, ScriptEngine& engine) const;
  // Runs the script's code between two epochs if it follows the state of the engine.
  Status cross_edge(ScriptEngine& engine);
  void tell_slots(const wire::ReplayStep& recorded, const OrderSpec& order);
  void add(const std::string& line) { report_.text += line + "\n"; }

  const wire::ReplayPlan plan_;
  std::vector<SlotLoss> slots_;  // of the step in work
  Evaluations ends_;             // of epochs; used if `has_edges_`
  bool has_edges_ = false;
  Step crossed_ = 0;  // the newest edge that the state has seen
  Report report_;
};

}  // namespace lockstep
