// The actions that decide() wants done. The adapter first commits all Persist actions of a turn as
// one transaction. Then it performs the other actions in order. So no message that depends on the
// journal leaves before the commit has returned.
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

// Term and generation of the envelope are already set. Several sends of a turn share one envelope:
// a message to all members lists all members, so copies would grow with the square of their number.
struct Send {
  ConnectionId to = 0;
  std::shared_ptr<const wire::Envelope> envelope;
};

// Closes the connection after its queued messages have left.
struct CloseConnection {
  ConnectionId connection = 0;
};

// Adds a step to the history. Steps come in ascending order without a gap.
struct AppendHistory {
  StepEntry step;
};

// Reads the manifest of a checkpoint in the run directory and answers with the event ManifestRead.
struct ReadManifest {
  std::string name;  // of the checkpoint
};

struct LogLine {
  enum class Level { kInfo, kWarn, kError };
  Level level = Level::kInfo;
  std::string event;    // stable name
  std::string message;  // a sentence
};

// The last action of a term whose members cannot continue the lineage from their state. The next
// term begins from the newest checkpoint on disk, in the same process (begin.h,
// BeginMode::kNextTerm). No member gets a Goodbye: connections close, and members register again.
struct EndTerm {
  std::string message;
};

// The last action of a run. A Goodbye to every peer comes before it.
struct EndRun {
  int exit_code = 0;
  std::string message;
};

using Action = std::variant<Persist, Send, CloseConnection, AppendHistory, ReadManifest, LogLine,
                            EndTerm, EndRun>;

}  // namespace lockstep::coordinator
