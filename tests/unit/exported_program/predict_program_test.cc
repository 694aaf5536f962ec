// model.predict_path: a second program of the same model that gives logits of inputs alone.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/exported_program/golden_program.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

using exported::testing::golden_path;

const data::SampleShape kPicture{1, 8, 8};

// make_model() with model.predict_path.
Result<std::unique_ptr<Model>> predicting(const std::string& program, const std::string& predict,
                                          const data::SampleShape& shape) {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(golden_path("../own_loss/" + program));
  if (program == "dense") spec.set_eval_path(golden_path("../own_loss/dense.eval"));
  spec.set_predict_path(golden_path("../own_loss/" + predict));
  return make_model(spec, shape, 3);
}

const data::SampleShape kFourColumns{.channels = 4, .height = 1, .width = 1, .is_row = true};

TEST(PredictProgram, GivesLogitsOfInputsAloneWithTheModelsParameters) {
  const auto model = predicting("weighted", "weighted.predict", kFourColumns);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const Predictor* predictor = (*model)->predictor();
  ASSERT_NE(predictor, nullptr);
  EXPECT_EQ(predictor->fewest(), 2u);
  EXPECT_THAT(predictor->check_batch(65, "a batch of 65"), FailsWith(Code::kConfig, Names("65")));
  const at::NoGradGuard no_grad;
  InitialTensors tensors = initial_tensors((*model)->layout());
  const ModelInputs x = sample_inputs(kFourColumns, 5, 3);
  EXPECT_EQ(predictor->logits(x, tensors.parameters, tensors.buffers, {}).sizes(),
            (std::vector<int64_t>{5, 3}));
  for (size_t i = 0; i < tensors.parameters.size(); ++i)
    tensors.parameters[i].fill_((*model)->layout().parameters[i].name == "out.bias" ? 2 : 0);
  EXPECT_TRUE(
      predictor->logits(x, tensors.parameters, tensors.buffers, {}).eq(2).all().item<bool>());
}

TEST(PredictProgram, MayGiveAMapAndTakeOneSizeOfBatchesOnly) {
  const auto model = predicting("dense", "dense.predict", kPicture);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  EXPECT_EQ((*model)->predictor()->fewest(), 4u);
  EXPECT_FALSE((*model)->predictor()->check_batch(5, "a batch of 5").is_ok());
}

TEST(PredictProgram, OfAnotherModelIsRefusedByName) {
  const auto refusal = [](const std::string& program, const std::string& predict,
                          const data::SampleShape& shape = kFourColumns) {
    return predicting(program, predict, shape).status();
  };
  EXPECT_THAT(refusal("weighted", "one_output"),
              FailsWith(Code::kConfig, Names("one_output.pt2", "out."), Advises("one module")));
  EXPECT_THAT(refusal("weighted", "per_sample"),
              FailsWith(Code::kConfig, Names("per_sample.pt2", "label"), Advises("logits")));
  EXPECT_THAT(refusal("weighted", "auto"),
              FailsWith(Code::kConfig, Names("auto.pt2"), Says("losses")));
  EXPECT_THAT(refusal("weighted", "dense.predict"),
              FailsWith(Code::kConfig, Names("dense.predict.pt2", "(batch, 4)")));
  EXPECT_THAT(refusal("dense", "../exported/convnet", kPicture),
              FailsWith(Code::kConfig, Names("convnet.pt2"), Advises("one module")));
  EXPECT_THAT(refusal("weighted", "none"), FailsWith(Code::kNoInput, Names("none.pt2")));
}

}  // namespace
}  // namespace lockstep
