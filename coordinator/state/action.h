// What decide() wants done. The adapter first commits all Persist actions of its turn as one
// transaction, and only then performs the others, in order: nothing that depends on the journal
// leaves before the commit has returned.
//
// Thread-safety: plain values.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "comm/wire/control.pb.h"
#include "coordinator/journal/journal_entry.h"
#include "coordinator/state/event.h"

namespace lockstep::coordinator {

struct Persist {
  JournalEntry entry;
};

// Term and generation of the envelope are already set. What goes to many in one turn is one
// envelope: every member is told of all others, so copies would grow with the square of the
// members.
struct Send {
  ConnectionId to = 0;
  std::shared_ptr<const wire::Envelope> envelope;
};

// After what was sent to it has left.
struct CloseConnection {
  ConnectionId connection = 0;
};

// A step has become part of the history; lines come in ascending order without a gap.
struct AppendHistory {
  StepEntry step;
};

struct LogLine {
  enum class Level { kInfo, kWarn, kError };
  Level level = Level::kInfo;
  std::string event;    // stable name
  std::string message;  // a sentence
};

// The last action of a term whose lineage cannot go on from what its members hold: the next term
// begins from the newest checkpoint on disk, in the same process (begin.h, BeginMode::kNextTerm).
// Nobody was told Goodbye; connections close, and members register anew.
struct EndTerm {
  std::string message;
};

// The last action of a run; everybody has been sent a Goodbye before it.
struct EndRun {
  int exit_code = 0;
  std::string message;
};

using Action =
    std::variant<Persist, Send, CloseConnection, AppendHistory, LogLine, EndTerm, EndRun>;

}  // namespace lockstep::coordinator
