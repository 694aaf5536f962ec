#include <gtest/gtest.h>

#include <fstream>

#include "coordinator/state/script_end.h"
#include "tests/sim/checks/checks.h"
#include "tests/sim/scenario.h"
#include "tests/sim/seed_list.h"
#include "tests/sim/world/disk.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::sim {
namespace {

TEST(Simulation, AnUndisturbedClusterTrainsToTheEnd) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Outcome outcome = simulate(plan_with(seed, {}));
    EXPECT_TRUE(outcome.failures.empty()) << outcome.failures.front().text;
    EXPECT_EQ(outcome.starts, 1u);
  }
}

TEST(Simulation, OneSeedGivesOneHistory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = simulate(plan_of(seed));
    const Outcome again = simulate(plan_of(seed));
    EXPECT_EQ(first.trace_hash, again.trace_hash) << describe(plan_of(seed));
    EXPECT_EQ(first.events, again.events);
  }
}

TEST(Simulation, AnotherSeedGivesAnotherHistory) {
  EXPECT_NE(simulate(plan_of(1)).trace_hash, simulate(plan_of(2)).trace_hash);
}

// A new kind of fault, which comes last, leaves histories without it as they are.
TEST(Simulation, EveryKindOfFaultIsDrawnByItself) {
  constexpr auto kAll = static_cast<uint64_t>(FaultKind::kCount);
  size_t drawn = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const std::vector<FaultSpec> all = draw_faults(seed, kAll);
    drawn += all.size();
    for (uint64_t kinds = 0; kinds < kAll; ++kinds) {
      const std::vector<FaultSpec> some = draw_faults(seed, kinds);
      ASSERT_LE(some.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        const bool is_older = static_cast<uint64_t>(all[i].kind) < kinds;
        ASSERT_EQ(is_older, i < some.size()) << "seed " << seed;
        if (is_older) {
          ASSERT_EQ(some[i].kind, all[i].kind) << "seed " << seed;
        }
      }
    }
  }
  EXPECT_GT(drawn, 500u);
}

TEST(Simulation, TheOldDrawingStaysAsItWas) {
  EXPECT_EQ(describe(plan_of(8408, Drawing::kOneStream)),
            "seed 8408: 2 x 2 workers, 3 slots, 14 steps; faults: disk network absurd-slot");
  EXPECT_EQ(describe(plan_of(45122, Drawing::kOneStream)),
            "seed 45122: 2 x 1 workers, 4 slots, 25 steps; faults: absurd-slot one-ahead");
}

TEST(Simulation, TheNewDrawingAddsToTheWorldOnly) {
  uint32_t with_turns = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Plan before = plan_of(seed, Drawing::kOwnStreams);
    const Plan now = plan_of(seed, Drawing::kShapes);
    EXPECT_EQ(before.options.turns, 1u);
    const bool is_as_before = now.options.turns == 1 && !now.options.has_edges &&
                              now.options.script_ends == ScriptEnds::kNever;
    if (is_as_before) {
      EXPECT_EQ(describe(before), describe(now));
    }
    with_turns += now.options.turns > 1 ? 1 : 0;
    EXPECT_EQ(now.options.steps % now.options.turns, 0u);
    ASSERT_EQ(before.faults.size(), now.faults.size());
  }
  EXPECT_GT(with_turns, 25u);
}

TEST(Simulation, AListNamesSeedsAndTheirDrawing) {
  const TemporaryDirectory directory("", "lockstep-seeds-");
  const std::string path = directory.path() + "/seeds.txt";
  const auto read = [&path](const std::string& text) {
    std::ofstream(path) << text;
    return read_seed_list(path);
  };
  const auto list = read("# what they are\n\n1 7  # once wrong\n2 1000000\n3 9\n");
  ASSERT_TRUE(list.is_ok()) << list.status().message();
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[0].drawing, Drawing::kOneStream);
  EXPECT_EQ((*list)[0].seed, 7u);
  EXPECT_EQ((*list)[1].drawing, Drawing::kOwnStreams);
  EXPECT_EQ((*list)[1].seed, 1000000u);
  EXPECT_EQ((*list)[2].drawing, Drawing::kShapes);
  for (const char* wrong : {"", "# none\n", "4 7\n", "1\n", "1 x\n", "x 7\n", "1 7 8\n"})
    EXPECT_EQ(read(wrong).status().code(), Code::kUsage) << wrong;
}

// A checkpoint that has left the lineage may no longer count in the journal.
TEST(Simulation, ADiskThatRotsLeavesACheckpointThatCounts) {
  Disk disk;
  const auto journal = disk.open_journal();
  const auto write = [&](Step step, Generation generation, coordinator::CheckpointState state) {
    Manifest manifest;
    manifest.resume.step = step;
    manifest.generation = generation;
    manifest.member = 1;
    std::string name = disk.write_checkpoint(manifest, {step, 7})->name;
    const std::vector<coordinator::JournalEntry> entry{
        coordinator::CheckpointEntry{name, step, generation, 1, "m", "w", 1, false, state}};
    EXPECT_TRUE(journal->commit(entry, {}).is_ok());
    return name;
  };
  write(6, 1, coordinator::CheckpointState::kRolledBack);
  const std::string only = write(6, 2, coordinator::CheckpointState::kComplete);
  disk.rot(coordinator::kNoStep);
  EXPECT_FALSE(disk.is_torn(only));
  const std::string newer = write(9, 2, coordinator::CheckpointState::kComplete);
  disk.rot(coordinator::kNoStep);
  EXPECT_TRUE(disk.is_torn(newer));
  EXPECT_FALSE(disk.is_torn(only));
}

// The run ends by patience right after a checkpoint of the same step.
TEST(Simulation, ADiskKeepsAWholeCheckpointThatIsWrittenAgain) {
  Disk disk;
  Manifest manifest;
  manifest.resume.step = 14;
  const std::string name = disk.write_checkpoint(manifest, {14, 7})->name;
  disk.tears_checkpoint = true;
  manifest.resume.phase = Phase::kEnd;
  ASSERT_TRUE(disk.write_checkpoint(manifest, {14, 7}).is_ok());
  EXPECT_FALSE(disk.is_torn(name));
  EXPECT_FALSE(disk.write_checkpoint(manifest, {14, 8}).is_ok());
}

// Faults that no seed of seeds.txt draws together.
TEST(Simulation, PlansThatOnceFailedHold) {
  const FaultSpec disk(FaultKind::kDisk);
  const FaultSpec absurd(FaultKind::kAbsurdSlot);
  const std::vector<Plan> plans = {
      // two commits fail and survive before any succeeds, so the journal's head counts neither
      plan_with(20954, {disk, disk, disk, absurd}),
      // the only checkpoint that counts rots
      plan_with(22105, {disk, disk, disk, absurd}),
      // two workers die in one slot before the journal has a record of the bad loss
      plan_with(51791, {disk, disk, FaultSpec(FaultKind::kCrashWorker), absurd}),
      // the older checkpoint goes while the newer one is not judged, and the one between is damaged
      plan_with(911, {disk, absurd})};
  for (const Plan& plan : plans) {
    const Outcome outcome = simulate(plan);
    EXPECT_TRUE(outcome.failures.empty())
        << describe(plan) << ": " << outcome.failures.front().text;
  }
}

coordinator::GenerationEntry start_of(Generation generation, Step total_steps) {
  coordinator::GenerationEntry entry;
  entry.generation = generation;
  entry.state = coordinator::GenerationState::kStarted;
  wire::Start start;
  start.set_total_steps(total_steps);
  entry.start = start.SerializeAsString();
  return entry;
}

// A member that hears nothing trains on in its generation, and some time its script ends it there.
TEST(Simulation, AnEndByTheScriptIsThatOfTheNewestStartAfterADeath) {
  WorldOptions options;
  options.script_ends = ScriptEnds::kByClock;
  World world(1, options, "");
  world.checks.push_back(make_script_end_check(world));
  const auto journal = world.disk.open_journal();
  const auto commit = [&](coordinator::JournalEntry entry) {
    const std::vector<coordinator::JournalEntry> entries{std::move(entry)};
    EXPECT_TRUE(journal->commit(entries, {}).is_ok());
  };
  const auto apply = [&](const char* process, Generation generation, Step step) {
    world.note_applied({process, 1, generation, step, {step + 1, 7}});
  };

  commit(start_of(1, options.steps));
  world.note_ended({"who dies", 1, {9, Phase::kEval}});
  EXPECT_EQ(world.last(), 9u);
  commit(start_of(2, options.steps));
  EXPECT_EQ(world.last(), options.steps) << "none that goes on has heard of it";
  world.note_ended({"who goes on", 2, {6, Phase::kEval}});
  commit(coordinator::SettingEntry{coordinator::kEndSetting, coordinator::text_of({6, 24})});
  apply("who is left behind", 1, 14);
  world.note_ended({"who is left behind", 1, {16, Phase::kEval}});
  EXPECT_EQ(world.last(), 6u);
  commit(start_of(3, 6));
  EXPECT_EQ(world.last(), 6u);
  EXPECT_TRUE(world.failures.empty());
  apply("who goes on", 3, 6);
  EXPECT_EQ(world.failures.size(), 1u);
}

TEST(Simulation, EveryFaultHasANameThatReplaysIt) {
  for (uint8_t kind = 0; kind < static_cast<uint8_t>(FaultKind::kCount); ++kind) {
    const FaultSpec spec(static_cast<FaultKind>(kind));
    const auto parsed = parse_fault(fault_name(spec));
    ASSERT_TRUE(parsed.has_value()) << fault_name(spec);
    EXPECT_EQ(parsed->kind, spec.kind);
  }
  EXPECT_TRUE(parse_fault("at-moment:transfer:kill").has_value());
  EXPECT_FALSE(parse_fault("nothing").has_value());
}

TEST(Simulation, EveryScenarioEndsAsItShould) {
  for (const Scenario& scenario : scenarios()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Outcome outcome = play(scenario, seed);
      EXPECT_TRUE(outcome.failures.empty()) << "sim --scenario " << scenario.name << " --seed "
                                            << seed << ": " << outcome.failures.front().text;
    }
  }
}

}  // namespace
}  // namespace lockstep::sim
