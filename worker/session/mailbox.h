// Orders from the loop's thread to the training thread: the newest start and the pending planned
// change. Closing a generation voids its orders. So the training thread never begins an older
// start, and never makes a planned change of a closed generation.
//
// Thread-safety: put(), plan(), close(), acknowledge(), recorded(), resolve() and end() from any
// thread; the waits from the training thread; wants_switch() from any.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

struct StartOrder {
  Generation generation = 0;
  MemberId member = 0;  // this worker
  std::string run_id;
  wire::Start start;
  bool planned = false;  // `start.resume` is where the members agree
};

class Mailbox {
 public:
  void put(StartOrder order);
  void plan(StartOrder order);

  // Orders of generations up to `through` are void.
  void close(Generation through);
  void end();
  // train.global_batch auto has become `global_batch`.
  void resolve(uint64_t global_batch);
  // `checkpoint` is in the journal.
  void acknowledge(std::string checkpoint);

  // Waits for resolve(). Nothing: the run is over.
  std::optional<uint64_t> wait_for_batch();

  // For a worker that is in no generation: waits for the next start, or for a planned change that
  // lets it join. Nothing: the run is over.
  std::optional<StartOrder> next();

  // For a member of `generation`: is there a planned change to vote for?
  bool wants_switch(Generation generation) const;
  // Waits for the planned change that the members of `generation` agreed on. Nothing: `generation`
  // was closed, or the run is over.
  std::optional<StartOrder> wait_for_plan(Generation generation);

  // Waits until `checkpoint` is in the journal; false: `generation` was closed, or the
  // run is over.
  bool wait_acknowledged(const std::string& checkpoint, Generation generation);

  // Something of this worker's is in the journal: wait_recorded() asks again.
  void recorded();
  // Waits until `is_recorded`; false: `generation` was closed, or the run is over. `is_recorded`
  // must not call the mailbox.
  bool wait_recorded(Generation generation, const std::function<bool()>& is_recorded);

  // Waits `pause_ms`; false at once if `generation` was closed or the run is over.
  bool pause(Generation generation, int pause_ms);

 private:
  bool is_over(Generation generation) const { return ended_ || generation <= closed_through_; }
  bool has_plan_for(Generation generation) const;
  bool can_join() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  Generation closed_through_ = 0;
  std::optional<StartOrder> start_;
  std::optional<StartOrder> plan_;
  std::string acknowledged_;  // the newest
  std::optional<uint64_t> global_batch_;
};

}  // namespace lockstep
