#include "deploy/cli/doctor/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

using doctor::Measurements;
using doctor::RungKind;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ReadTrainer, StepsBecomeARateAndTheLargerStepATime) {
  Measurements out;
  const Status read = read_trainer(R"({"once": {"samples": 10, "steps_s": [0.1, 0.4, 0.2],
                                                "shortest_s": [0.1, 0.3, 0.05]},
                                       "twice": {"samples": 20, "steps_s": [], "shortest_s": [0.4, 0.3]}})",
                                   out);
  ASSERT_EQ(read, Status::ok());
  EXPECT_DOUBLE_EQ(out.step_s, 0.05);
  EXPECT_DOUBLE_EQ(out.double_step_s, 0.3);
  EXPECT_DOUBLE_EQ(out.find(RungKind::kTrainer)->rate.median, 50);
  EXPECT_DOUBLE_EQ(out.find(RungKind::kTrainer)->rate.high, 100);
}

TEST(AllocatorAdvice, NamesTheFastestThatIsFasterInEveryWindow) {
  Diagnosis found;
  found.measured.rungs.push_back({RungKind::kTrainer, {100, 90, 110, 5}, 0, ""});
  EXPECT_EQ(allocator_advice(found), "");
  found.allocators = {{"jemalloc", {130, 105, 140, 5}}};
  EXPECT_EQ(allocator_advice(found), "") << "its slowest window may be noise";
  found.allocators = {{"jemalloc", {130, 115, 140, 5}}, {"tcmalloc", {150, 120, 160, 5}}};
  EXPECT_THAT(allocator_advice(found), HasSubstr("cluster.malloc=tcmalloc"));
  EXPECT_THAT(allocator_advice(found), HasSubstr("1.50"));
  EXPECT_THAT(to_text(found), HasSubstr("malloc jemalloc"));
  EXPECT_THAT(allocator_advice(found), HasSubstr("install it"));
  EXPECT_EQ(to_json(found)["allocators"][1]["samples_per_second"], 150);
  found.allocators = {{"system", {130, 115, 140, 5}}};
  EXPECT_THAT(allocator_advice(found), Not(HasSubstr("install")));
}

TEST(ReadTrainer, WithoutTheLargerStepItSaysWhy) {
  Measurements out;
  const Status read =
      read_trainer(R"({"once": {"samples": 10, "steps_s": [0.1], "shortest_s": [0.1]},
      "twice": {"samples": 0, "steps_s": [], "shortest_s": [], "why_none": "no memory"}})",
                   out);
  ASSERT_EQ(read, Status::ok());
  EXPECT_EQ(out.double_step_s, 0);
  EXPECT_THAT(out.notes, Contains(HasSubstr("no memory")));
}

TEST(ReadTrainer, TheComputeCapabilityOfTheGpuIsPartOfTheSetting) {
  Measurements out;
  const std::string times = R"({"once": {"samples": 10, "steps_s": [0.1], "shortest_s": [0.1]},
      "twice": {"samples": 20, "steps_s": [0.2], "shortest_s": [0.2]})";
  ASSERT_EQ(read_trainer(times + "}", out), Status::ok());
  EXPECT_EQ(out.setting.gpu_capability, 0u);
  ASSERT_EQ(read_trainer(times + R"(, "gpu_capability": 90})", out), Status::ok());
  EXPECT_EQ(out.setting.gpu_capability, 90u);
}

constexpr char kOnceAndTwice[] = R"({"once": {"samples": 10, "steps_s": [0.1], "shortest_s": [0.1]},
    "twice": {"samples": 20, "steps_s": [0.2], "shortest_s": [0.2]}, "resident": )";

TEST(ReadTrainer, StepsOnTheGpusOwnBatchAreARungAndTheLimitOfTheTrainer) {
  Measurements out;
  ASSERT_EQ(read_trainer(kOnceAndTwice + std::string(R"({"samples": 10, "steps_s": [0.04],
                "shortest_s": [0.04]}})"),
                         out),
            Status::ok());
  EXPECT_DOUBLE_EQ(out.find(RungKind::kResident)->rate.median, 250);
  EXPECT_DOUBLE_EQ(out.find(RungKind::kTrainer)->rate.median, 100);
  EXPECT_DOUBLE_EQ(out.find(RungKind::kTrainer)->limit, 250);
}

TEST(ReadTrainer, WithoutMemoryForAThirdEngineItSaysSo) {
  Measurements out;
  ASSERT_EQ(read_trainer(kOnceAndTwice + std::string(R"({"samples": 0, "steps_s": [],
                "shortest_s": [], "why_none": "no memory"}})"),
                         out),
            Status::ok());
  EXPECT_EQ(out.find(RungKind::kResident), nullptr);
  EXPECT_EQ(out.find(RungKind::kTrainer)->limit, 0);
  EXPECT_THAT(out.notes, Contains(AllOf(Says("GPU"), Says("no memory"))));
}

TEST(ReadTrainer, WhatIsNoFiguresIsAnError) {
  for (const char* json :
       {"", "null", "[]", "{}", R"({"once": 1, "twice": 2})", R"({"once": {}, "twice": {}})"}) {
    Measurements out;
    EXPECT_EQ(read_trainer(json, out).code(), Code::kInternal) << json;
  }
}

// One thing is wrong in each.
TEST(ReadTrainer, AFigureThatCannotBeIsAnError) {
  const std::string good = R"({"samples": 1, "steps_s": [1], "shortest_s": [1]})";
  const auto read = [&](const std::string& once, const std::string& twice,
                        const std::string& resident) {
    Measurements out;
    return read_trainer(R"({"once": )" + once + R"(, "twice": )" + twice + R"(, "resident": )" +
                            resident + "}",
                        out)
        .code();
  };
  ASSERT_EQ(read(good, good, good), Code::kOk);
  for (const char* bad : {"7", R"({"samples": -1, "steps_s": [1], "shortest_s": [1]})",
                          R"({"samples": 0, "steps_s": [1], "shortest_s": [1]})",
                          R"({"samples": 1, "steps_s": [0], "shortest_s": [1]})",
                          R"({"samples": 1, "steps_s": [1e-320], "shortest_s": [1]})",
                          R"({"samples": 1, "steps_s": [1e999], "shortest_s": [1]})",
                          R"({"samples": 1, "steps_s": ["x"], "shortest_s": [1]})",
                          R"({"samples": 1, "steps_s": {}, "shortest_s": [1]})"}) {
    EXPECT_EQ(read(bad, good, good), Code::kInternal) << bad;
    EXPECT_EQ(read(good, good, bad), Code::kInternal) << bad;
  }
  for (const char* bad :
       {"7", R"({"samples": 2, "shortest_s": [0]})", R"({"samples": 2, "shortest_s": {}})"})
    EXPECT_EQ(read(good, bad, good), Code::kInternal) << bad;
  EXPECT_EQ(read(R"({"samples": 1, "steps_s": [], "shortest_s": [1]})", good, good),
            Code::kInternal);
}

Diagnosis slow_by_threads() {
  Diagnosis diagnosis;
  Measurements& measured = diagnosis.measured;
  measured.setting = {.samples = 1000,
                      .global_batch = 64,
                      .slots = 1,
                      .slot_samples = 64,
                      .data_threads = 1,
                      .cores = 4,
                      .prefetch_batches = 4,
                      .is_encoded = true};
  const auto add = [&](RungKind kind, double rate) {
    measured.rungs.push_back({kind, doctor::rate_of({rate}), 4 * rate, "4 cores"});
  };
  add(RungKind::kRaw, 90'000);
  add(RungKind::kDecode, 250);
  add(RungKind::kSamples, 240);
  add(RungKind::kLoader, 230);
  add(RungKind::kTrainer, 4'000);
  measured.step_s = 0.016;
  measured.double_step_s = 0.031;
  diagnosis.finding = doctor::decide(measured);
  return diagnosis;
}

TEST(DoctorReport, HasEveryRungTheFindingAndTheChangeAsAKeyOfTheJob) {
  const std::string text = to_text(slow_by_threads());
  for (const char* words :
       {"raw reads ", "90,000", "decode", "finding: threads", "data.threads=4\n", "1.94"})
    EXPECT_THAT(text, HasSubstr(words));
}

TEST(DoctorReport, ShowsTheNewFigureBesideTheOld) {
  const Diagnosis before = slow_by_threads();
  Diagnosis after = before;
  for (doctor::Rung& rung : after.measured.rungs)
    if (rung.kind == RungKind::kLoader) rung.rate = doctor::rate_of({911});
  const std::string text = compare_text(before, after);
  EXPECT_THAT(text, HasSubstr("data.threads=4"));
  EXPECT_THAT(text, ::testing::ContainsRegex(" 230 +911"));
}

TEST(Diagnose, RatesThatWereFarApartAreNotedWithTheRungWhereTheyWereFarthest) {
  Measurements out;
  out.rungs = {{RungKind::kRaw, doctor::rate_of({100, 150}), 0, ""},
               {RungKind::kLoader, doctor::rate_of({10, 25}), 0, ""},
               {RungKind::kTrainer, doctor::rate_of({10, 40}), 0, ""}};
  note_unrest(out);
  ASSERT_EQ(out.notes.size(), 1u);
  EXPECT_THAT(out.notes[0], AllOf(Says("4.0"), Says("trainer")));
}

TEST(Diagnose, RatesNearEachOtherAreNotNoted) {
  Measurements out;
  out.rungs = {{RungKind::kRaw, doctor::rate_of({100, 150}), 0, ""}};
  note_unrest(out);
  EXPECT_THAT(out.notes, ::testing::IsEmpty());
}

TEST(Diagnose, ABatchThatARunFindsItselfIsRefusedWithWhatToType) {
  wire::JobSpec job;
  const auto found = diagnose(job, {});
  EXPECT_EQ(found.status().code(), Code::kUsage);
  EXPECT_THAT(found.status().message(), HasSubstr("train.global_batch=128"));
}

}  // namespace
}  // namespace lockstep
