#include "deploy/cli/job/job_schema.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <iterator>
#include <set>

#include "comm/base/limits.h"
#include "comm/run/job/data_formats.h"
#include "comm/run/job/job_fields.h"
#include "comm/run/job/job_options.pb.h"
#include "comm/run/job/loss_kind.h"
#include "comm/run/job/models/model_table.h"
#include "deploy/cli/job/job_hints.h"
#include "deploy/cli/keys/job_list.h"
#include "deploy/cli/script/script_keys.h"
#include "tests/support/fails_with.h"
#include "worker/model/gpt2_parts.h"
#include "worker/optim/optimizers.h"

namespace lockstep {
namespace {

void collect(const google::protobuf::Descriptor& type, const std::string& prefix,
             std::set<std::string>& out) {
  for (int i = 0; i < type.field_count(); ++i) {
    const auto* field = type.field(i);
    if (field->message_type() != nullptr)
      collect(*field->message_type(), prefix + field->name() + (field->is_repeated() ? ".N." : "."),
              out);
    else
      out.insert(prefix + field->name());
  }
}

TEST(JobSchema, EveryFieldOfTheJobMessageHasOneRowAndEveryRowIsAField) {
  std::set<std::string> fields;
  collect(*wire::JobSpec::descriptor(), "", fields);
  std::set<std::string> rows;
  for (const JobKey& row : job_keys()) EXPECT_TRUE(rows.insert(std::string(row.key)).second);
  EXPECT_EQ(rows, fields);
}

TEST(JobSchema, EveryFieldSaysInItsOptionsWhatItIs) {
  for (const wire::JobField& field : wire::job_fields()) {
    const wire::KeyOptions& options = *field.options;
    EXPECT_FALSE(options.help().empty()) << field.key << " has no help option in job.proto";
    EXPECT_TRUE(options.required() || options.has_default_())
        << field.key << " is neither required nor has a default";
    const auto type = field.way.back()->cpp_type();
    const bool is_number = type != google::protobuf::FieldDescriptor::CPPTYPE_STRING &&
                           type != google::protobuf::FieldDescriptor::CPPTYPE_BOOL;
    EXPECT_EQ(is_number, options.has_at_least() || options.has_above()) << field.key;
  }
}

TEST(JobSchema, KeysOfSomeModelsAreThoseThatTheirRowsName) {
  std::set<std::string> of_rows;
  for (const ModelRow& model : model_table())
    for (const ModelKey& key : model.keys) of_rows.insert("model." + std::string(key.key));
  std::set<std::string> of_options;
  for (const wire::JobField& field : wire::job_fields())
    if (field.options->by_model()) of_options.insert(field.key);
  EXPECT_EQ(of_options, of_rows);
  EXPECT_EQ(find_job_key("model.batch_norm")->under, "mlp and cnn");
  EXPECT_EQ(find_job_key("model.size")->under, "gpt2");
}

TEST(JobSchema, ValuesOfATableOfTheCodeAreThatTable) {
  const JobKey& loss = *find_job_key("train.loss");
  ASSERT_EQ(loss.names.size(), std::size(kLosses));
  for (size_t i = 0; i < std::size(kLosses); ++i) {
    EXPECT_EQ(loss.names[i], kLosses[i].name);
    EXPECT_EQ(loss_row(kLosses[i].kind).name, kLosses[i].name);
    wire::TrainSpec train;
    train.set_loss(std::string(kLosses[i].name));
    EXPECT_EQ(loss_kind(train), kLosses[i].kind);
  }
  EXPECT_EQ(find_job_key("model.name")->names.size(), model_table().size());
  EXPECT_EQ(find_job_key("data.train.format")->names.size(), std::size(kNamedFormats));
  EXPECT_NE(loss.meaning.find("mse, l1 and huber: one output"), std::string_view::npos)
      << loss.meaning;
  EXPECT_EQ(job_value_hint(loss, "smooth_l1"), "; did you mean huber?");
  EXPECT_EQ(job_value_hint(*find_job_key("model.name"), "lenet"), "; did you mean cnn?");
}

TEST(JobSchema, SentencesOfScriptsThatAreAnotherKeysAreThere) {
  for (const wire::JobField& field : wire::job_fields()) {
    const std::string& other = field.options->said_by_script_as();
    if (other.empty()) continue;
    ASSERT_NE(find_job_key(other), nullptr) << field.key;
    EXPECT_EQ(said_by_script(field.key, false), said_by_script(other, false));
    EXPECT_NE(said_by_script(field.key, true), "");
  }
}

TEST(JobSchema, EverySectionSaysWhatItIsAbout) {
  std::set<std::string> sections;
  for (const wire::JobSection& section : wire::job_sections()) sections.insert(section.name);
  for (const JobKey& row : job_keys())
    EXPECT_TRUE(sections.count(wire::section_of(std::string(row.key)))) << row.key;
}

// Options are text: what they repeat of the code has to agree with it.
TEST(JobSchema, BoundsAreThoseOfTheCode) {
  const std::pair<const char*, double> bounds[] = {
      {"cluster.min_workers", limits::kMembers},
      {"cluster.workers", limits::kMembers},
      {"data.cache.requests", limits::kSourceRequests},
      {"data.length_classes", limits::kLengthClasses},
      {"data.mix.0.weight", limits::kMixWeights},
      {"data.mix_weight", limits::kMixWeights},
      {"data.prefetch_batches", limits::kPrefetchBatches},
      {"data.read_ahead_mb", limits::kReadAheadMib},
      {"data.threads", limits::kDataThreads},
      {"model.block", limits::kSequenceTokens},
      {"model.n_embd", limits::kModelWidth},
      {"model.n_head", limits::kModelWidth},
      {"model.n_layer", limits::kModelLayers},
      {"model.vocab", limits::kVocabulary},
      {"train.accumulate", limits::kSlots},
      {"train.slots", limits::kSlots},
  };
  for (const auto& [key, most] : bounds) EXPECT_EQ(find_job_key(key)->range.max, most) << key;
}

TEST(JobSchema, NamesAreThoseOfTheCode) {
  EXPECT_THAT(find_job_key("model.size")->names, testing::ElementsAreArray(kGpt2Sizes));
  EXPECT_THAT(find_job_key("data.eval.format")->names, testing::ElementsAreArray(kDataFormats));
  EXPECT_THAT(find_job_key("model.name")->names, testing::ElementsAreArray(model_names()));
  EXPECT_THAT(find_job_key("optimizer.name")->names, testing::ElementsAreArray(optimizer_names()));
}

TEST(JobSchema, EveryDefaultIsAPossibleValue) {
  wire::JobSpec job;
  for (const JobKey& row : job_keys()) {
    if (row.required() || row.key == "cluster.workers") continue;
    const Status status = set_job_value(row, {std::string(row.default_text)}, job);
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
}

TEST(JobSchema, EveryDefaultOfANameIsAPossibleValueOfAPossibleName) {
  wire::JobSpec job;
  for (const JobKey& row : job_keys()) {
    if (row.named_defaults.empty()) continue;
    const JobKey* const name =
        find_job_key(std::string(row.key.substr(0, row.key.rfind('.'))) + ".name");
    ASSERT_NE(name, nullptr) << row.key;
    for (const NamedDefault& other : row.named_defaults) {
      EXPECT_THAT(name->names, testing::Contains(other.name)) << row.key;
      EXPECT_TRUE(set_job_value(row, {std::string(other.text)}, job).is_ok()) << row.key;
    }
  }
}

TEST(JobSchema, AValueThatWasReadBackCanBeSetAgain) {
  wire::JobSpec job;
  for (const char* text : {"0.1", "1e-08", "0.30000000000000004", "123456.789"}) {
    const JobKey& lr = *find_job_key("optimizer.lr");
    ASSERT_TRUE(set_job_value(lr, {text}, job).is_ok());
    const double before = job.optimizer().lr();
    ASSERT_TRUE(set_job_value(lr, job_value(lr, job), job).is_ok());
    EXPECT_EQ(job.optimizer().lr(), before);
  }
}

struct Wrong {
  const char* key;
  const char* value;
  const char* told;  // part of the sentence
};

class ImpossibleValue : public testing::TestWithParam<Wrong> {};

TEST_P(ImpossibleValue, IsRefusedWithTheKeyTheValueAndWhatWouldBeRight) {
  const Wrong& wrong = GetParam();
  wire::JobSpec job;
  const Status status = set_job_value(*find_job_key(wrong.key), {wrong.value}, job);
  EXPECT_THAT(status, FailsWith(Code::kUsage, testing::HasSubstr(wrong.key)));
  EXPECT_THAT(status.message(), testing::HasSubstr(wrong.told));
}

INSTANTIATE_TEST_SUITE_P(
    All, ImpossibleValue,
    testing::Values(
        Wrong{"cluster.workers", "0", "at least 1"}, Wrong{"cluster.workers", "-1", "at least 1"},
        Wrong{"cluster.workers", "two", "not a word"},
        Wrong{"cluster.min_workers", "0", "at least 1"},
        Wrong{"cluster.min_wait_s", "0", "at least 1"},
        Wrong{"cluster.max_crashes", "-1", "at least 0"},
        Wrong{"cluster.max_preemptions", "many", "not a word"},
        Wrong{"train.global_batch", "-5", "at least 1"},
        Wrong{"train.global_batch", "0", "at least 1"},
        Wrong{"train.global_batch", "automatic", "or auto"},
        Wrong{"train.global_batch", "1.5", "a whole number"},
        Wrong{"train.global_batch", "", "a whole number"},
        Wrong{"train.epochs", "99999999999999999999", "at most"},
        Wrong{"train.slots", "70000", "at most 65536"}, Wrong{"optimizer.lr", "nan", "above 0"},
        Wrong{"optimizer.lr", "inf", "a number"}, Wrong{"optimizer.lr", "-0.1", "above 0"},
        Wrong{"optimizer.lr", "0", "above 0"}, Wrong{"optimizer.lr", "fast", "a number"},
        Wrong{"optimizer.lr", "1e-3x", "a number"}, Wrong{"model.dropout", "1", "below 1"},
        Wrong{"model.dropout", "-0.1", "at least 0"},
        Wrong{"model.batch_norm", "yes", "true or false"},
        Wrong{"model.name", "cnnn", "did you mean cnn?"},
        Wrong{"train.on_corruption", "roll", "rollback or continue"},
        Wrong{"train.on_bad_samples", "skipp", "did you mean skip?"},
        Wrong{"train.loss_spike", "-1", "at least 0"},
        Wrong{"train.precision", "bfp16", "did you mean"},
        Wrong{"train.loss_scale", "0.5", "at least 1"},
        Wrong{"train.loss_scale_growth", "0.5", "at least 1"},
        Wrong{"train.loss_scale_growth_every", "0", "at least 1"},
        Wrong{"train.loss_scale_backoff", "1", "below 1"},
        Wrong{"train.accumulate", "0", "at least 1"}, Wrong{"train.graph", "yes", "on or off"},
        Wrong{"cluster.rebalance", "yes", "true or false"},
        Wrong{"optimizer.name", "admw", "did you mean adamw?"},
        Wrong{"schedule.name", "one-cycle", "did you mean onecycle?"},
        Wrong{"comm.backend", "hots", "did you mean host?"},
        Wrong{"comm.numerics", "exat", "did you mean exact?"},
        Wrong{"data.train.format", "xlsx", "megatron, tokens, tokens_u32, text or csv"},
        Wrong{"data.reader", "io_uring", "auto, mmap or pread"},
        Wrong{"checkpoint.keep", "1", "at least 2"}, Wrong{"comm.bucket_mb", "-1", "at least 0"},
        Wrong{"job", "", "not empty"}, Wrong{"job", "a\nb", "printable"},
        Wrong{"data.train.path", "\xff\xfe", "UTF-8"}));

}  // namespace
}  // namespace lockstep
