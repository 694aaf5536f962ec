// Step records and evaluations on their way to the coordinator: batched, numbered, kept until
// acknowledged.
//
//   add() ─▶ open batch ─flush()─▶ numbered batches, memory first, then file ─next()─▶ sent
//                                                                    acknowledge() ─▶ forgotten
//
// INVARIANTS
//  R1 Batches are numbered from 1 without a gap; a batch's number and content never change (until
//     clear(), which makes a new queue of it).
//  R2 A batch is handed out in order and, after rewind(), again, until acknowledge() covers it: the
//     coordinator ignores numbers it has, so the effect is exactly once.
//  R3 Records of two generations never share a batch.
//  R4 Memory holds at most kRecordBatchesInMemory batches; the spill file holds the later ones, in
//     order. At most kRecordBatchesInFlight are unacknowledged on the wire.
//  R5 Nothing is lost if the spill file can take no more (its limit, a full disk): the open batch
//     stays open, and a thread that adds to a full one waits until the coordinator has acknowledged
//     enough.
//
// Thread-safety: all calls from any thread. Only add() and add_eval() wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/wire/control.pb.h"
#include "worker/session/record_spill.h"

namespace lockstep {

struct RecordBatch {
  Generation generation = 0;
  wire::StepRecords records;
};

class RecordQueue {
 public:
  // Called when a thread begins to wait, with the spill file's error. Must not call the queue.
  using OnFull = std::function<void(const Status&)>;

  // `spill_path`: created when first needed, deleted at the end.
  explicit RecordQueue(std::string spill_path, OnFull on_full = {},
                       uint64_t spill_bytes = limits::kRecordSpillBytes)
      : spill_(std::move(spill_path), spill_bytes), on_full_(std::move(on_full)) {}

  // True: a batch became full, call next() soon.
  bool add(Generation generation, wire::StepRecord record);

  // The result of an evaluation goes with the records before it, in a batch that this closes: call
  // next() soon.
  void add_eval(Generation generation, wire::EvalReport report);

  // Closes the open batch, if it holds anything and the spill file takes it.
  void flush();

  // No thread waits for room any more, now or later: a record without room is dropped.
  void end();

  // The next batch to send, or nothing: all sent, or enough in flight.
  Result<std::optional<RecordBatch>> next();

  // All batches up to `batch` are in the journal, which has had a commit of this number.
  Status acknowledge(uint64_t batch, uint64_t sequence = 0);

  // After a lost connection: hands out again every batch that is not acknowledged.
  void rewind();

  // Forgets all records, and drops later ones of generations up to `through`. Numbers from 1.
  Status clear(Generation through);

  // True if everything is acknowledged.
  bool empty() const;

  // Copies of everything not acknowledged, oldest first, for a checkpoint's manifest. Batches
  // beyond `limit_bytes` are left out, newest first, and `complete` says so.
  struct Unacknowledged {
    std::vector<wire::StepRecords> batches;
    bool complete = true;
    uint64_t sequence = 0;  // the newest commit of the journal that is known
  };
  Result<Unacknowledged> unacknowledged(size_t limit_bytes) const;

 private:
  // Makes `open_` a batch of `generation` with room. False: its records no longer count.
  bool make_room(std::unique_lock<std::mutex>& lock, Generation generation);
  bool is_open() const;
  Status close_batch();
  Status refill();

  mutable std::mutex mutex_;
  RecordBatch open_;
  std::deque<RecordBatch> memory_;  // numbers [first_, first_ + size)
  RecordSpill spill_;               // the batches after memory_
  OnFull on_full_;
  std::condition_variable has_room_;
  bool has_ended_ = false;
  Generation cleared_through_ = 0;  // add() drops records up to this one
  uint64_t first_ = 1;              // number of memory_.front()
  uint64_t next_sent_ = 1;          // number of the next batch to hand out
  uint64_t last_closed_ = 0;        // number of the newest batch
  uint64_t sequence_ = 0;           // the largest that acknowledge() told
};

}  // namespace lockstep
