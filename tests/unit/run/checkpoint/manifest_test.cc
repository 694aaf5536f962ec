#include "comm/run/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "comm/base/hash.h"
#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::manifest_of;
using ::testing::Not;

Manifest full_manifest() {
  Manifest m = manifest_of(1500);
  m.resume.phase = Phase::kEval;
  m.epoch = 3;
  m.weights_sha256 = std::string(64, 'a');
  m.state_sha256 = std::string(64, 'b');
  m.lineage = {"0123456789abcdef0123456789abcdef", 17, "run-1", "step-0000000100-g1-m1", 100};
  m.ends_at = 1500;
  m.files = {{"model.safetensors", 123, std::string(64, '0')}};
  wire::SkippedSlots& skip = m.skipped.emplace_back();
  skip.set_step(70);
  skip.mutable_slots()->set_end(2);
  m.proof = *StepProof::of({{1000, 128'000, ~uint64_t{0}}, {1500, 64'000, 5}});
  *m.legend.add_class_names() = "apple\nor \"pear\"";
  m.legend.add_mean(0.1F);  // no finite binary fraction
  m.legend.add_std(3e-38F);
  wire::StepRecords& batch = m.unacknowledged.emplace_back();
  batch.set_batch(15);
  wire::StepRecord& record = *batch.add_records();
  record.set_step(1499);
  record.set_loss(0.1);  // no finite binary fraction
  record.set_common_hash(~uint64_t{0});
  batch.add_evals()->set_loss(0.1);
  return m;
}

TEST(Manifest, OnlyAStateAfterAnEdgeSaysSo) {
  Manifest m = full_manifest();
  EXPECT_THAT(manifest_to_json(m), Not(HasSubstr("after_edge")));
  m.is_after_edge = true;
  m.resume.phase = Phase::kEdge;
  const auto back = manifest_from_json(manifest_to_json(m));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_TRUE(back->is_after_edge);
  EXPECT_EQ(back->resume, m.resume);
}

TEST(Manifest, EveryFieldSurvivesTheWayThroughJson) {
  const Manifest m = full_manifest();
  const auto back = manifest_from_json(manifest_to_json(m));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back->resume, m.resume);
  EXPECT_FALSE(back->is_after_edge);
  EXPECT_EQ(back->generation, m.generation);
  EXPECT_EQ(back->member, m.member);
  EXPECT_EQ(back->seed, m.seed);
  EXPECT_EQ(back->slots, m.slots);
  EXPECT_EQ(back->global_batch, m.global_batch);
  EXPECT_EQ(back->epoch, m.epoch);
  EXPECT_EQ(back->schedule.SerializeAsString(), m.schedule.SerializeAsString());
  EXPECT_EQ(back->dataset_fingerprint, m.dataset_fingerprint);
  EXPECT_EQ(back->numerics_fingerprint, m.numerics_fingerprint);
  EXPECT_EQ(back->weights_sha256, m.weights_sha256);
  EXPECT_EQ(back->state_sha256, m.state_sha256);
  EXPECT_EQ(back->lineage, m.lineage);
  EXPECT_EQ(back->proof, m.proof);
  EXPECT_EQ(back->ends_at, m.ends_at);
  ASSERT_EQ(back->skipped.size(), 1u);
  EXPECT_EQ(back->skipped[0].SerializeAsString(), m.skipped[0].SerializeAsString());
  EXPECT_EQ(back->files, m.files);
  EXPECT_EQ(back->legend.SerializeAsString(), m.legend.SerializeAsString());
  ASSERT_EQ(back->unacknowledged.size(), 1u);
  EXPECT_EQ(back->unacknowledged[0].SerializeAsString(), m.unacknowledged[0].SerializeAsString());
}

// Lockstep wrote such manifests before there were legends.
TEST(Manifest, OneWithoutALegendIsRead) {
  auto root = nlohmann::json::parse(manifest_to_json(full_manifest()));
  root.erase("legend");
  root.erase("self_sha256");
  root["self_sha256"] = to_hex(sha256(root.dump()));
  const auto back = manifest_from_json(root.dump());
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back->legend.ByteSizeLong(), 0U);
  EXPECT_EQ(back->lineage, full_manifest().lineage);
}

TEST(Manifest, AnyFlippedBitIsFound) {
  const std::string text = manifest_to_json(full_manifest());
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(manifest_from_json(damaged).is_ok()) << "byte " << i << " of\n" << text;
  }
}

TEST(Manifest, ANewerFormatIsRefusedAsSuch) {
  std::string text = manifest_to_json(full_manifest());
  const std::string now = R"("format": 3)";
  text.replace(text.find(now), now.size(), R"("format": 4)");
  const auto back = manifest_from_json(text);
  EXPECT_EQ(back.status().code(), Code::kConfig);
  EXPECT_THAT(back.status().message(), HasSubstr("format 4"));
}

TEST(Manifest, AFileNameCannotLeadOutOfTheDirectory) {
  for (const char* name : {"../x", "/etc/passwd", "", ".hidden", "a/b"}) {
    Manifest m = full_manifest();
    m.files[0].name = name;
    EXPECT_EQ(manifest_from_json(manifest_to_json(m)).status().code(), Code::kBadData) << name;
  }
}

TEST(Manifest, MissingFieldsAndOtherTypesAreDamage) {
  EXPECT_EQ(manifest_from_json("").status().code(), Code::kBadData);
  EXPECT_EQ(manifest_from_json("[]").status().code(), Code::kBadData);
  EXPECT_EQ(manifest_from_json("{}").status().code(), Code::kBadData);
  EXPECT_EQ(manifest_from_json(R"({"format": "one"})").status().code(), Code::kBadData);
  // 4294967297 would be 1 in 32 bits, which is a format; a newer one is told as such.
  for (const char* number : {"1.5", "6e55", "-1", "true", "4294967297"}) {
    const auto back = manifest_from_json(R"({"format": )" + std::string(number) + "}");
    EXPECT_THAT(back.status().message(), Not(HasSubstr("self_sha256"))) << "was taken for a format";
    EXPECT_EQ(back.status().code(), Code::kBadData) << number;
  }
}

}  // namespace
}  // namespace lockstep
