// The data that a script's job names, in the hands of the engine that stands between Python and
// them.
#include "worker/script/script_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "comm/collectives/loopback/loopback.h"
#include "tests/support/fails_with.h"
#include "tests/support/idx_writer.h"
#include "tests/unit/script/serve_desk.h"
#include "worker/script/batch_handle.h"
#include "worker/script/script_engine.h"

namespace lockstep {
namespace {

constexpr uint32_t kSamples = 50;

class ScriptDataTest : public ::testing::Test {
 protected:
  ScriptDataTest() {
    write_file(dir_.path("train-images-idx3-ubyte"), data::some_images(kSamples, 2, 3));
    write_file(dir_.path("train-labels-idx1-ubyte"), data::some_labels(kSamples, 4));
    job_.set_seed(3);
    job_.mutable_train()->set_global_batch(20);
    job_.mutable_train()->set_slots(4);
    *job_.mutable_data()->mutable_train() = data::spec_of(dir_.path(), "idx");
    job_.mutable_data()->add_transforms("normalize");
  }
  std::unique_ptr<ScriptData> open() {
    auto opened = ScriptData::open(job_, 1, dir_.path("cache"));
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    return std::move(opened).value();
  }
  // Returns the view of one rank with these slots.
  GenerationView view(SlotRun slots) {
    GenerationView view;
    view.generation = 1;
    view.collective = collectives_.front().get();
    view.slot_runs = {slots};
    view.total_steps = 6;
    return view;
  }

  TemporaryDirectory dir_;
  wire::JobSpec job_;
  std::unique_ptr<GradientBuffer> buffer_ =
      make_plain_buffer({.gradients = 16, .statistics = 16, .elements = 32}, 4);
  std::vector<std::unique_ptr<Collective>> collectives_ = make_loopback(1, {buffer_.get()});
};

std::vector<float> pixels_of(const data::Batch& batch) {
  return {batch.images, batch.images + batch.samples * batch.shape.elements()};
}

TEST_F(ScriptDataTest, AGenerationGivesTheBatchesThatEachSlotHasByItself) {
  const auto data = open();
  EXPECT_EQ(data->shape().samples, kSamples);
  ASSERT_TRUE(data->begin_generation(view({1, 3}), 1).is_ok());
  std::vector<ScriptData::BatchRef> kept;
  for (Step step = 1; step < 6; ++step)
    for (uint32_t slot = 1; slot < 3; ++slot) {
      auto batch = data->next(step, slot);
      ASSERT_TRUE(batch.is_ok()) << batch.status().message();
      kept.push_back(std::move(*batch));
    }
  data->end_generation();
  for (const ScriptData::BatchRef& batch : kept) {
    const auto alone = data->load(batch->step, batch->slot);
    ASSERT_TRUE(alone.is_ok()) << alone.status().message();
    EXPECT_EQ((*alone)->digest, batch->digest);
    EXPECT_EQ(pixels_of(**alone), pixels_of(*batch));
  }
  EXPECT_EQ(data->next(6, 1).status().code(), Code::kInternal) << "there is no generation";
}

// The loader is ahead of the state then, by the slot that failed.
TEST_F(ScriptDataTest, AfterAStepThatFailedNoBatchComesBeforeTheNextGeneration) {
  const auto data = open();
  Desk desk;
  ScriptLayout layout =
      ScriptLayout::create({.parameters = {{"a", {3}}}, .statistics = {}, .metrics = {}}, 4)
          .value();
  const auto engine =
      ScriptEngine::create(
          {job_, data->shape(), data->order(), layout, desk, {"a=b"}, {0.125}, {}, data.get()},
          [&](const BufferLayout& flat, uint32_t regions) {
            return Result(make_plain_buffer(flat, regions, layout.room()));
          })
          .value();
  std::vector<uint32_t> slots;
  std::thread python([&] {
    serve_desk(desk, [&](const ls_order& order, ls_reply& reply) {
      slots.push_back(order.task.slot);
      EXPECT_TRUE(engine->take_batch().is_ok());
      reply.code = 65;
      reply.text = "a planted failure";
    });
  });
  const auto collectives = make_loopback(1, {&engine->gradient_buffer()});
  GenerationView own = view({0, 4});
  own.collective = collectives.front().get();
  own.bucket_bounds = {0, layout.flat().buffer.elements};
  for (int generation = 0; generation < 2; ++generation) {
    EXPECT_TRUE(engine->begin_generation(own, {}).is_ok());
    EXPECT_THAT(engine->step(), FailsWith(Code::kBadData, Says("planted")));
    EXPECT_THAT(engine->step(), FailsWith(Code::kInternal, Says("in no generation")));
    engine->end_generation();
  }
  desk.end({});
  python.join();
  EXPECT_EQ(slots, (std::vector<uint32_t>{0, 0}));
}

TEST_F(ScriptDataTest, AHandleKeepsABatchAndTellsItsTensors) {
  auto data = open();
  auto batch = data->load(0, 2);
  ASSERT_TRUE(batch.is_ok()) << batch.status().message();
  const std::vector<float> pixels = pixels_of(**batch);
  ls_batch_handle handle(job_.data(), std::move(*batch));
  data.reset();
  const ls_batch told = handle.view();
  ASSERT_EQ(told.field_count, 2u);
  const ls_field& x = told.fields[0];
  EXPECT_EQ(std::vector<int64_t>(x.shape, x.shape + x.dims), (std::vector<int64_t>{5, 1, 2, 3}));
  EXPECT_EQ(x.sample_stride, 6);
  ASSERT_EQ(x.bytes, pixels.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(x.data, pixels.data(), x.bytes), 0);
  const ls_field& y = told.fields[1];
  EXPECT_EQ(y.role, LS_TARGET);
  EXPECT_EQ(y.bytes, 5 * sizeof(int64_t));
}

TEST_F(ScriptDataTest, EvaluationDataAreReadInTheirOwnOrder) {
  EXPECT_THAT(ScriptData::open(job_, 1, dir_.path("cache"), EvalData::kOpen),
              FailsWith(Code::kUsage, Advises("data.eval.path")));
  write_file(dir_.path("t10k-images-idx3-ubyte"), data::some_images(30, 2, 3));
  write_file(dir_.path("t10k-labels-idx1-ubyte"), data::some_labels(30, 4));
  *job_.mutable_data()->mutable_eval() = data::spec_of(dir_.path(), "idx");
  EXPECT_EQ(open()->eval(), nullptr) << "the script does not evaluate";
  auto opened = ScriptData::open(job_, 1, dir_.path("cache"), EvalData::kOpen);
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  ASSERT_EQ((*opened)->eval()->samples(), 30u);
  const auto whole = (*opened)->read_eval(0, 30);
  ASSERT_TRUE(whole.is_ok()) << whole.status().message();
  const auto part = (*opened)->read_eval(7, 12);
  ASSERT_TRUE(part.is_ok()) << part.status().message();
  const std::vector<float> all = pixels_of(**whole);
  EXPECT_EQ(pixels_of(**part), (std::vector<float>(all.begin() + 7 * 6, all.begin() + 12 * 6)));
  EXPECT_TRUE(std::equal((*part)->labels, (*part)->labels + 5, (*whole)->labels + 7));
  for (const auto& [begin, end] : {std::pair{5, 5}, std::pair{29, 31}})
    EXPECT_EQ((*opened)->read_eval(begin, end).status().code(), Code::kInternal);
}

TEST_F(ScriptDataTest, SamplesThatAreHeldOutAreEvaluationData) {
  job_.mutable_data()->set_holdout(0.2);
  auto opened = ScriptData::open(job_, 1, dir_.path("cache"), EvalData::kOpen);
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  EXPECT_EQ((*opened)->eval()->samples(), 10u);
  EXPECT_EQ((*opened)->shape().samples, 40u);
  EXPECT_EQ(open()->shape().samples, 40u) << "whether the script evaluates or not";
}

TEST_F(ScriptDataTest, DataThatAreNotThereAreNamed) {
  job_.mutable_data()->mutable_train()->set_path(dir_.path("none"));
  EXPECT_THAT(ScriptData::open(job_, 1, dir_.path("cache")),
              FailsWith(Code::kNoInput, Names(dir_.path("none"))));
}

}  // namespace
}  // namespace lockstep
