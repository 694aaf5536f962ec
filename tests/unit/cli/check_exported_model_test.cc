// Jobs of exported programs that can be refused before a worker starts.
#include "deploy/cli/run/check_exported_model.h"

#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

std::string program(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/exported/" + name + ".pt2";
}

wire::JobSpec exported_job(const std::string& name, const std::string& format = "idx") {
  wire::JobSpec job;
  job.mutable_model()->set_name("exported");
  job.mutable_model()->set_path(program(name));
  job.mutable_data()->mutable_train()->set_format(format);
  job.mutable_data()->mutable_eval()->set_path("e");
  job.mutable_train()->set_global_batch(64);
  job.mutable_train()->set_slots(4);
  job.mutable_train()->set_eval_batch(32);
  return job;
}

TEST(CheckExportedModel, PassesWhatFitsAndOtherModels) {
  EXPECT_TRUE(check_exported_model(exported_job("mlp")).is_ok());
  wire::JobSpec job = exported_job("tied_lm", "text");
  job.mutable_model()->set_block(8);
  EXPECT_TRUE(check_exported_model(job).is_ok());
  job = exported_job("stochastic_depth");
  job.mutable_model()->set_eval_path(program("stochastic_depth.eval"));
  EXPECT_TRUE(check_exported_model(job).is_ok());
  job.mutable_model()->set_name("torchscript");
  job.mutable_model()->set_path("nowhere");
  EXPECT_TRUE(check_exported_model(job).is_ok());
}

TEST(CheckExportedModel, NamesTheProgramThatCannotBeRead) {
  EXPECT_THAT(check_exported_model(exported_job("refused_from_file")),
              FailsWith(Code::kConfig, Names("refused_from_file.pt2", "aten.from_file")));
  EXPECT_THAT(check_exported_model(exported_job("none")),
              FailsWith(Code::kNoInput, Names("none.pt2")));
}

TEST(CheckExportedModel, ComparesBatchesWithTheExportedRange) {
  wire::JobSpec job = exported_job("from_two");
  job.mutable_train()->set_slots(64);
  EXPECT_THAT(
      check_exported_model(job),
      FailsWith(Code::kConfig, Names("from_two.pt2", "train.global_batch 64"), Advises("min=1")));
  job = exported_job("mlp");
  job.mutable_train()->set_eval_batch(250);
  EXPECT_THAT(check_exported_model(job),
              FailsWith(Code::kConfig, Names("train.eval_batch", "1 to 64"), Advises("max=1024")));
  job.mutable_data()->mutable_eval()->clear_path();
  EXPECT_TRUE(check_exported_model(job).is_ok()) << "nothing is evaluated";
}

TEST(CheckExportedModel, ComparesTheInputWithTheData) {
  EXPECT_THAT(check_exported_model(exported_job("tied_lm")),
              FailsWith(Code::kConfig, Names("tokens", "int64"), Advises("float32")));
  EXPECT_THAT(check_exported_model(exported_job("mlp", "text")),
              FailsWith(Code::kConfig, Names("float32"), Advises("int64")));
  wire::JobSpec job = exported_job("tied_lm", "text");
  job.mutable_model()->set_block(16);
  EXPECT_THAT(check_exported_model(job),
              FailsWith(Code::kConfig, Names("8 tokens", "16"), Advises("model.block")));
}

TEST(CheckExportedModel, ComparesTheParametersOfBothPrograms) {
  wire::JobSpec job = exported_job("stochastic_depth");
  job.mutable_model()->set_eval_path(program("convnet"));
  EXPECT_THAT(check_exported_model(job),
              FailsWith(Code::kConfig, Names("convnet.pt2", "stem.weight"), Advises("one module")));
  job.mutable_model()->set_eval_path(program("mlp"));
  EXPECT_THAT(check_exported_model(job),
              FailsWith(Code::kConfig, Names("mlp.pt2", "fc1.weight"), Says("another shape")));
}

TEST(CheckExportedModel, LossesOfItsOwnDoNotGoWithWhatOnlyCrossEntropyHas) {
  wire::JobSpec own = exported_job("../own_loss/weighted");
  EXPECT_TRUE(check_exported_model(own).is_ok()) << check_exported_model(own).message();
  const auto refusal = [&](const auto& change) {
    wire::JobSpec job = own;
    change(job);
    return check_exported_model(job);
  };
  EXPECT_THAT(refusal([](wire::JobSpec& job) { job.mutable_train()->set_loss("mse"); }),
              FailsWith(Code::kUsage, Names("train.loss mse"), Advises("leave it out")));
  EXPECT_THAT(refusal([](wire::JobSpec& job) { job.mutable_train()->set_label_smoothing(0.1); }),
              FailsWith(Code::kUsage, Names("train.label_smoothing")));
  EXPECT_THAT(refusal([](wire::JobSpec& job) { job.mutable_data()->add_transforms("mixup=0.4"); }),
              FailsWith(Code::kUsage, Names("mixup=0.4"), Advises("data.transforms")));
  EXPECT_THAT(refusal([](wire::JobSpec& job) { job.mutable_checkpoint()->set_best("accuracy"); }),
              FailsWith(Code::kUsage, Names("checkpoint.best"), Advises("loss")));
}

TEST(CheckExportedModel, AProgramForPredictionsTakesInputsAloneAndHasTheTrainedParameters) {
  const auto checked = [](const std::string& predict, uint32_t batch = 32) {
    wire::JobSpec job = exported_job("../own_loss/weighted");
    job.mutable_model()->set_predict_path(program(predict));
    job.mutable_train()->set_eval_batch(batch);
    return check_exported_model(job);
  };
  EXPECT_TRUE(checked("../own_loss/weighted.predict").is_ok())
      << checked("../own_loss/weighted.predict").message();
  EXPECT_TRUE(checked("../own_loss/weighted.predict", 1).is_ok()) << "it is filled up to two";
  EXPECT_THAT(checked("../own_loss/weighted.predict", 64 + 1),
              FailsWith(Code::kConfig, Names("train.eval_batch", "65"), Advises("max=")));
  EXPECT_THAT(checked("../own_loss/per_sample"),
              FailsWith(Code::kConfig, Names("per_sample.pt2", "label", "model.predict_path"),
                        Advises("logits")));
  EXPECT_THAT(checked("../own_loss/auto"),
              FailsWith(Code::kConfig, Names("auto.pt2", "model.predict_path"), Says("losses")));
  EXPECT_THAT(checked("../own_loss/one_output"),
              FailsWith(Code::kConfig, Names("one_output.pt2", "out.weight"), Says("shape")));
  EXPECT_THAT(checked("mlp"),
              FailsWith(Code::kConfig, Names("mlp.pt2", "fc1.weight"), Advises("one module")));
  EXPECT_THAT(checked("none"), FailsWith(Code::kNoInput, Names("none.pt2")));
}

TEST(CheckExportedModel, NamesWhatIsNoLossOfSamples) {
  EXPECT_THAT(check_exported_model(exported_job("../own_loss/refused_no_loss")),
              FailsWith(Code::kConfig, Names("refused_no_loss.pt2"), Advises("\"loss\"")));
  wire::JobSpec tokens = exported_job("../own_loss/refused_shifts", "text");
  tokens.mutable_model()->set_block(8);
  EXPECT_THAT(
      check_exported_model(tokens),
      FailsWith(Code::kUsage, Names("refused_shifts.pt2", "TinyForCausalLM"), Advises("logits")));
}

}  // namespace
}  // namespace lockstep
