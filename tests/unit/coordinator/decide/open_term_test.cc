// A script's run: its workers say what it is, and the journal holds them to it.
#include "tests/unit/coordinator/decide/open_term.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "coordinator/audit/run_order.h"
#include "tests/support/fails_with.h"

namespace lockstep::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMost = uint64_t{1} << 63;

TEST_F(OpenTerm, WhatAllTellIsJournalledWholeAndEndsTheTerm) {
  begin(BeginMode::kFirst);
  EXPECT_TRUE(w.options.is_open_term());
  EXPECT_EQ(w.join(1, script(1)), Reason::kRegistered);
  EXPECT_TRUE(w.journal.load()->identity.empty()) << "one has not spoken yet";
  EXPECT_EQ(w.join(2, script(2)), Reason::kEndedTerm);
  EXPECT_EQ(stored(kSamplesKey), "50");
  EXPECT_EQ(stored(kFingerprintKey), "aa");
  EXPECT_EQ(stored(kEvalSamplesKey), "8");
  EXPECT_EQ(stored(kGlobalBatchKey), "4");
  EXPECT_EQ(stored("script.optimizer.lr"), "0.1");
  EXPECT_EQ(stored("script.state"), "1234");
  EXPECT_EQ(w.term_ends.size(), 1u);
  EXPECT_TRUE(w.ends.empty());
  EXPECT_TRUE(w.journal.generations().empty()) << "no step may see other facts";
  EXPECT_TRUE(order_of(w.journal.load()->identity).is_ok()) << "the audit knows the order";
}

TEST_F(OpenTerm, TheNextTermTrainsWithTheFacts) {
  resolve();
  begin(BeginMode::kNextTerm);
  EXPECT_FALSE(w.options.is_open_term());
  EXPECT_EQ(facts_.train_samples(), 50u);
  EXPECT_FALSE(facts_.open());
  EXPECT_EQ(w.options.shape.samples, 50u);
  EXPECT_TRUE(is_evaluated_after(4, w.options)) << "the facts say that there are evaluation data";
  EXPECT_EQ(w.join(1, script(1)), Reason::kRegistered);
  EXPECT_EQ(w.join(2, script(2)), Reason::kPrepared);
  w.promise(1);
  EXPECT_EQ(w.promise(2), Reason::kStarted);
  EXPECT_EQ(stored("script.optimizer.lr"), "0.1");
}

TEST_F(OpenTerm, ACoordinatorKilledBeforeTheCommitAsksAgain) {
  begin(BeginMode::kFirst);
  w.join(1, script(1));
  begin(BeginMode::kTakeOver);
  EXPECT_TRUE(w.options.is_open_term());
  EXPECT_EQ(w.join(1, script(1, "0.2")), Reason::kRegistered) << "nobody was held to anything yet";
  EXPECT_EQ(w.wait_alive(w.options.lease_ms + 1'000), Reason::kNothingDue) << "all have to be here";
  EXPECT_EQ(w.join(2, script(2, "0.2")), Reason::kEndedTerm);
  EXPECT_EQ(stored("script.optimizer.lr"), "0.2");
}

TEST_F(OpenTerm, ACoordinatorKilledBeforeItWroteTheFactsHasThemFromTheJournal) {
  has_file_ = false;
  resolve();
  for (const BeginMode mode : {BeginMode::kTakeOver, BeginMode::kResume, BeginMode::kNextTerm}) {
    begin(mode);
    EXPECT_FALSE(w.options.is_open_term());
    EXPECT_EQ(w.options.facts.train_samples(), 50u);
    EXPECT_EQ(w.options.facts.eval_fingerprint(), "bb");
    EXPECT_FALSE(w.options.facts.open());
  }
}

TEST_F(OpenTerm, OtherDataThanTheFirstMembersAreRefusedWithBothValues) {
  begin(BeginMode::kFirst);
  w.join(1, script(1));
  EXPECT_EQ(w.join(2, script(2, "0.1", 49)), Reason::kEndedFacts);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  EXPECT_THAT(w.ends[0].message, HasSubstr("training samples is 50 in this run and 49 there"));
}

TEST_F(OpenTerm, AnotherScriptThanTheFirstMembersIsRefusedWithBothValues) {
  begin(BeginMode::kFirst);
  w.join(1, script(1));
  EXPECT_EQ(w.join(2, script(2, "0.2")), Reason::kEndedScript);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 64);
  EXPECT_THAT(w.ends[0].message, HasSubstr("script.optimizer.lr is 0.1 in this run and 0.2 there"));
  EXPECT_TRUE(w.journal.load()->identity.empty());
}

TEST_F(OpenTerm, AReplacementIsComparedWithTheFirstThatDied) {
  begin(BeginMode::kFirst);
  w.join(1, script(1));
  w.hello(World::kAgent, {1000});
  w.exit(World::kAgent, 1000, -1, 9, "", /*will_restart=*/true);
  wire::Register again = script(1, "0.2");
  again.set_pid(2'000);
  EXPECT_EQ(w.join(3, again), Reason::kEndedScript);
}

TEST_F(OpenTerm, AnotherLearningRateAfterAResumeIsRefusedAndTheRunGoesOn) {
  resolve();
  begin(BeginMode::kResume);
  EXPECT_EQ(w.join(1, script(1, "0.2")), Reason::kRefusedMisfit);
  EXPECT_TRUE(w.ends.empty());
  const auto sent = w.sent(1);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent.back().goodbye().exit_code(), 64u);
  EXPECT_THAT(last_words(1), HasSubstr("script.optimizer.lr is 0.1 in this run and 0.2 there. What "
                                       "identifies a run cannot change"));
  EXPECT_EQ(w.join(2, script(2, "0.1", 49)), Reason::kRefusedMisfit);
  EXPECT_EQ(w.sent(2).back().goodbye().exit_code(), 65u);
}

TEST_F(OpenTerm, AKeyThatIsNewOrGoneIsADifference) {
  begin(BeginMode::kFirst);
  wire::Register first = script(1);
  set_identity(&first, {{"a", "1"}});
  w.join(1, first);
  wire::Register second = script(2);
  set_identity(&second, {{"b", "2"}});
  EXPECT_EQ(w.join(2, second), Reason::kEndedScript);
  EXPECT_THAT(w.ends[0].message,
              HasSubstr("script.b is (not set) in this run and 2 there; script.a is 1 in this run "
                        "and (not set) there"));
}

TEST_F(OpenTerm, ManyDifferencesAndLongValuesMakeAShortMessage) {
  begin(BeginMode::kFirst);
  std::vector<std::pair<std::string, std::string>> mine;
  std::vector<std::pair<std::string, std::string>> theirs;
  for (char c = 'a'; c <= 'z'; ++c) {
    mine.emplace_back(std::string(1, c), std::string(4'000, 'x') + "\x1b[2J");
    theirs.emplace_back(std::string(1, c), std::string(4'000, 'x') + "y");
  }
  wire::Register first = script(1);
  set_identity(&first, mine);
  w.join(1, first);
  wire::Register second = script(2);
  set_identity(&second, theirs);
  EXPECT_EQ(w.join(2, second), Reason::kEndedScript);
  const std::string text = w.ends[0].message;
  EXPECT_LT(text.size(), 1'500u);
  EXPECT_THAT(text, HasSubstr("23 more differ"));
  EXPECT_THAT(text, HasSubstr("xy there"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

// Two data sets take turns: an epoch is twice the first one's samples.
void mix(wire::Register* m, uint64_t samples) {
  for (const char* fingerprint : {"x", "y"}) {
    wire::MixedFacts& part = *m->mutable_facts()->add_mixed();
    part.set_fingerprint(fingerprint);
    part.set_samples(samples);
    part.set_weight(1);
  }
}

TEST_F(OpenTerm, TheDataSetsOfAMixtureAreKeptForTheAuditAndForTheNextTerm) {
  job_.mutable_data()->add_mix()->set_path("/y");
  has_file_ = false;
  begin(BeginMode::kFirst);
  for (ConnectionId c = 1; c <= 2; ++c) {
    wire::Register m = script(c);
    mix(&m, 25);
    w.join(c, m);
  }
  const auto order = order_of(w.journal.load()->identity);
  ASSERT_TRUE(order.is_ok()) << order.status().message();
  ASSERT_EQ(order->spec.parts.size(), 2u);
  EXPECT_EQ(order->spec.parts[1].fingerprint, "y");
  begin(BeginMode::kNextTerm);
  ASSERT_EQ(w.options.facts.mixed_size(), 2);
  EXPECT_EQ(w.options.facts.mixed(0).samples(), 25u);
}

TEST_F(OpenTerm, AReportThatNobodyCanUseIsRefusedByName) {
  begin(BeginMode::kFirst);
  const auto refused = [&](const char* why, const auto& change) {
    wire::Register m = script(1);
    change(m);
    EXPECT_EQ(w.join(1, m), Reason::kRefusedMalformed) << why;
    EXPECT_THAT(last_words(1), HasSubstr(why));
  };
  refused("0 training samples", [](auto& m) { m.mutable_facts()->set_train_samples(0); });
  refused("samples", [](auto& m) { m.mutable_facts()->set_eval_samples(kMost); });
  refused("no fingerprint of its training data",
          [](auto& m) { m.mutable_facts()->clear_train_fingerprint(); });
  refused("no fingerprint of its evaluation data",
          [](auto& m) { m.mutable_facts()->clear_eval_fingerprint(); });
  refused("a fingerprint that is longer", [](auto& m) {
    m.mutable_facts()->set_train_fingerprint(std::string(limits::kFingerprintBytes + 1, 'a'));
  });
  refused("an impossible mixture", [](auto& m) { mix(&m, 0); });
  refused("a mixture of other samples", [](auto& m) { mix(&m, 24); });
  refused("nothing of itself", [](auto& m) { m.clear_identity(); });
  refused("the key a twice", [](auto& m) { set_identity(&m, {{"a", "1"}, {"a", "1"}}); });
  refused("the key a behind b", [](auto& m) { set_identity(&m, {{"b", "1"}, {"a", "1"}}); });
  refused("which is empty", [](auto& m) { set_identity(&m, {{"", "1"}}); });
  refused("a\\x07", [](auto& m) { set_identity(&m, {{"a\a", "1"}}); });
  refused("which is empty, longer than", [](auto& m) {
    set_identity(&m, {{std::string(limits::kIdentityKeyBytes + 1, 'a'), "1"}});
  });
  refused("bytes for a, more than", [](auto& m) {
    set_identity(&m, {{"a", std::string(limits::kIdentityValueBytes + 1, 'a')}});
  });
  const auto many = [](size_t count, size_t bytes) {
    std::vector<std::pair<std::string, std::string>> facts;
    for (size_t i = 0; i < count; ++i)
      facts.emplace_back(std::to_string(1'000'000 + i), std::string(bytes, 'a'));
    return facts;
  };
  refused("facts of itself, more than",
          [&](auto& m) { set_identity(&m, many(limits::kIdentityFacts + 1, 0)); });
  refused("a hash that is longer than",
          [](auto& m) { m.set_state_hash(std::string(limits::kScriptHashBytes + 1, 'a')); });
  refused("bytes of itself, more than", [&](auto& m) {
    set_identity(&m, many(limits::kIdentityBytes / limits::kIdentityValueBytes,
                          limits::kIdentityValueBytes));
  });
  EXPECT_TRUE(w.ends.empty());
  EXPECT_TRUE(w.state.members.empty());
}

// rebuild.h knows the data of a run, not what its script says.
TEST_F(OpenTerm, ARebuiltJournalAsksTheScriptOnceMore) {
  facts_ = script(1).facts();
  std::vector<JournalEntry> entries;
  for (const IdentityEntry& entry : identity_of(job_, facts_)) entries.push_back(entry);
  entries.push_back(TermEntry{1, 7, "{}"});
  ASSERT_TRUE(w.journal.commit(entries, 0).is_ok());
  begin(BeginMode::kResume);
  EXPECT_TRUE(w.options.is_open_term());
  EXPECT_EQ(w.options.shape.samples, 50u) << "what is known is no stand-in";
  EXPECT_EQ(w.join(1, script(1)), Reason::kRegistered);
  EXPECT_EQ(w.join(2, script(2)), Reason::kEndedTerm);
  EXPECT_EQ(stored("script.optimizer.lr"), "0.1");
  begin(BeginMode::kNextTerm);
  EXPECT_FALSE(w.options.is_open_term());
}

TEST_F(OpenTerm, FactsMayNotBeOpenInARunWithoutAScript) {
  EXPECT_THAT(resolve_options(small_options().job, open_facts(), {}, "/run"),
              FailsWith(Code::kBadData, Names("/run/facts.pb")));
}

TEST_F(OpenTerm, AJournalWithoutSamplesIsDamaged) {
  EXPECT_THAT(resolve_options(job_, open_facts(), {{kSeedKey, "0"}}, "/run"),
              FailsWith(Code::kBadData, Names(kSamplesKey)));
}

TEST_F(OpenTerm, AnotherJobOnAResumeIsRefusedAsEver) {
  resolve();
  job_.mutable_train()->set_global_batch(8);
  const JournalContents contents = *w.journal.load();
  const auto options = resolve_options(job_, facts_, contents.identity, "/run");
  EXPECT_THAT(
      begin_term(w.journal, contents, shelf_, *options, {BeginMode::kResume, 7, "{}", 1}, *logger_),
      FailsWith(Code::kUsage, Names("train.global_batch is 4 in this run")));
}

TEST_F(OpenTerm, NativeRunsJournalNothingOfAScript) {
  World native;
  wire::Register m = World::registration(0);
  set_identity(&m, {{"a", "1"}});
  native.join(1, m);
  native.join(2);
  native.promise(1);
  ASSERT_EQ(native.promise(2), Reason::kStarted);
  EXPECT_TRUE(script_identity(native.journal.load()->identity).empty());
}

}  // namespace
}  // namespace lockstep::coordinator
