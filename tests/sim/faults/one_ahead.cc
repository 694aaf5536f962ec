#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// All workers but one hang while they read the sums of a step. The one has applied the step,
// perhaps for so long that its record is in the journal. Then it dies; or another worker dies, so
// that the one becomes the source of the state, and dies a little later, perhaps in the middle of
// the transfer.
class OneAhead final : public Fault {
 public:
  using Fault::Fault;

  void begin() override {
    readings_left_ = between(1, 80);
    becomes_source_ = one_in(2);
    // Records leave every 200 ms, so this strikes before and after them.
    hold_ms_ = becomes_source_ ? between(5, 80) : between(5, 380);
    world_.on_moment.push_back([this](Moment moment, const std::string& process) {
      if (moment == Moment::kReading) on_reading(process);
      if (moment == Moment::kTransfer && waits_for_transfer_) on_transfer();
    });
  }
  void undo() override {
    is_over_ = true;
    waits_for_transfer_ = false;
  }

 private:
  void on_reading(const std::string& process) {
    if (is_over_ || --readings_left_ > 0) return;
    if (ahead_.empty()) {
      ahead_ = process;
      world_.trace.add("one ahead", process);
      world_.loop.call_after(hold_ms_, [this] { strike(); });
    }
    if (process == ahead_) return;
    SimWorker* worker = cluster_.worker_named(process);
    if (worker != nullptr) worker->stall(hold_ms_ + 15);
  }

  void strike() {
    is_over_ = true;
    if (!becomes_source_) return kill(ahead_);
    waits_for_transfer_ = true;
    for (SimWorker* worker : cluster_.workers())
      if (worker->name() != ahead_) return worker->kill();
  }

  void on_transfer() {
    waits_for_transfer_ = false;
    world_.loop.call_after(between(0, 60), [this] { kill(ahead_); });
  }

  void kill(const std::string& name) {
    if (SimWorker* worker = cluster_.worker_named(name)) worker->kill();
  }

  int64_t readings_left_ = 0;
  int64_t hold_ms_ = 0;
  bool becomes_source_ = false;
  std::string ahead_;
  bool is_over_ = false;
  bool waits_for_transfer_ = false;
};

}  // namespace

std::unique_ptr<Fault> make_one_ahead(Cluster& cluster, uint64_t key) {
  return std::make_unique<OneAhead>(cluster, key);
}

}  // namespace lockstep::sim
