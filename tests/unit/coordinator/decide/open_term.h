// A script's run and its coordinators, for tests of an open term.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/decide/begin_state.h"
#include "coordinator/decide/open_term.h"
#include "coordinator/state/identity.h"
#include "coordinator/term/term.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {

class EmptyShelf final : public CheckpointShelf {
 public:
  Result<std::vector<ListedCheckpoint>> list() override { return std::vector<ListedCheckpoint>(); }
  Status verify(const ListedCheckpoint&) override { return Status::ok(); }
};

inline wire::JobSpec script_job() {
  wire::JobSpec job = small_options().job;
  job.mutable_model()->set_name("script");
  job.mutable_data()->clear_eval();
  return job;
}

inline wire::DataFacts open_facts() {
  wire::DataFacts facts;
  facts.set_open(true);
  return facts;
}

inline wire::Register script(ConnectionId c, const std::string& lr = "0.1", uint64_t samples = 50) {
  wire::Register m = World::registration(static_cast<uint32_t>(c) - 1);
  m.mutable_facts()->set_train_samples(samples);
  m.mutable_facts()->set_eval_samples(8);
  m.mutable_facts()->set_eval_fingerprint("bb");
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"optimizer", "SGD"}, {"optimizer.lr", lr}, {"state", "1234"}}) {
    wire::IdentityFact& fact = *m.add_identity();
    fact.set_key(key);
    fact.set_value(value);
  }
  return m;
}

inline void set_identity(wire::Register* m,
                         const std::vector<std::pair<std::string, std::string>>& facts) {
  m->clear_identity();
  for (const auto& [key, value] : facts) {
    wire::IdentityFact& fact = *m->add_identity();
    fact.set_key(key);
    fact.set_value(value);
  }
}

// A job of a script, and the coordinators that come and go over one journal.
class OpenTerm : public ::testing::Test {
 protected:
  // Does what begin.h does, with `facts_` for facts.pb.
  void begin(BeginMode mode) {
    const JournalContents contents = *w.journal.load();
    auto options = resolve_options(job_, facts_, contents.identity, "/run");
    ASSERT_TRUE(options.is_ok()) << options.status().message();
    w.options = *options;
    const auto begun =
        begin_term(w.journal, contents, shelf_, w.options, {mode, 7, "{}", 1}, *logger_);
    ASSERT_TRUE(begun.is_ok()) << begun.status().message();
    if (has_file_) facts_ = w.options.facts;
    w.state = begin_state(begun->beginning, w.now_ms, w.state.experience);
    w.ends.clear();
    w.term_ends.clear();
  }
  void resolve() {
    begin(BeginMode::kFirst);
    ASSERT_EQ(w.join(1, script(1)), Reason::kRegistered);
    ASSERT_EQ(w.join(2, script(2)), Reason::kEndedTerm);
  }
  std::string stored(const std::string& key) {
    const JournalContents contents = *w.journal.load();
    for (const IdentityEntry& entry : contents.identity)
      if (entry.key == key) return entry.value;
    return "";
  }
  std::string last_words(ConnectionId c) const {
    const auto sent = w.sent(c);
    return sent.empty()                ? ""
           : sent.back().has_goodbye() ? sent.back().goodbye().message()
                                       : sent.back().evict().reason();
  }

  wire::JobSpec job_ = script_job();
  wire::DataFacts facts_ = open_facts();
  bool has_file_ = true;
  World w{make_options(script_job(), open_facts(), "/run")};
  EmptyShelf shelf_;
  std::unique_ptr<Logger> logger_ = null_logger();
};

}  // namespace lockstep::coordinator
