// An export describes its input well enough to build it without Lockstep.
#include "deploy/cli/export/input_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

ModelFacts facts_of(const std::string& model, const std::string& format,
                    const std::vector<std::string>& transforms = {}) {
  ModelFacts facts;
  facts.job.mutable_model()->set_name(model);
  facts.job.mutable_data()->mutable_train()->set_format(format);
  for (const std::string& word : transforms) facts.job.mutable_data()->add_transforms(word);
  return facts;
}

TEST(InputCard, ImagesAreMadeAsEvaluationMakesThem) {
  ModelFacts facts = facts_of("resnet18", "image_folder",
                              {"random_resized_crop=64", "flip", "brightness=0.2", "normalize"});
  facts.facts.mutable_legend()->add_mean(0.25F);
  facts.facts.mutable_legend()->add_std(0.5F);
  const Json wanted = Json::parse(
      R"([{"resize": 73}, {"center_crop": 64}, {"divide_bytes_by": 255}, "normalize"])");
  EXPECT_EQ(input_json(facts)["evaluation"], wanted);
  EXPECT_EQ(input_json(facts)["dtype"], "float32");
  for (const char* words :
       {"Resize(73)", "CenterCrop(64)", "ToTensor()", "Normalize([0.25], [0.5])"})
    EXPECT_THAT(input_text(facts), HasSubstr(words));

  facts = facts_of("resnet18", "image_folder", {"resize=256", "random_crop=224"});
  EXPECT_EQ(input_json(facts)["evaluation"][0], Json({{"resize", 256}}));
  facts = facts_of("resnet18", "image_folder", {"center_crop=24"});
  EXPECT_EQ(input_json(facts)["evaluation"][0], Json({{"resize_if_smaller", 24}}));
}

TEST(InputCard, RowsHaveTheirColumnsInOrder) {
  ModelFacts facts = facts_of("mlp", "csv", {"normalize"});
  for (const char* name : {"width", "height"}) facts.facts.mutable_legend()->add_columns(name);
  facts.facts.mutable_legend()->add_mean(1);
  facts.facts.mutable_legend()->add_std(2);
  const Json input = input_json(facts);
  EXPECT_EQ(input["kind"], "rows");
  EXPECT_EQ(input["columns"], Json::array({"width", "height"}));
  EXPECT_EQ(input["evaluation"], Json::array({"normalize"}));
  EXPECT_THAT(input_text(facts), HasSubstr("`width`, `height`"));
  EXPECT_THAT(architecture_text(facts), HasSubstr("256, 128"));
  EXPECT_THAT(small_net_lines(facts), HasSubstr("fc3.weight"));
}

// Names come from files of others, and a page of ours holds them.
TEST(InputCard, NamesNeitherEndNorBeginAnythingInThePage) {
  ModelFacts facts = facts_of("mlp", "csv");
  for (const char* name : {"two\n## lines", "a`b", "``", "\x1b[31mred", "<b>&amp;", "  "})
    facts.facts.mutable_legend()->add_columns(name);
  const std::string text = input_text(facts);
  for (const char* shown :
       {R"(`two\n## lines`)", "``a`b``", "``` `` ```", R"(`\x1b[31mred`)", "`<b>&amp;`", "`  `"})
    EXPECT_THAT(text, HasSubstr(shown));
  EXPECT_THAT(text, Not(AnyOf(HasSubstr("\n## lines"), HasSubstr("\x1b"))));

  facts.command = "lockstep export model 'a\n```\n# title\x1b[0m' out";
  facts.checkpoint = "a`b\n# c";
  facts.measured = Measurement();
  facts.measured->why_not = "/d/a`b<script>\n# title is not *there*";
  facts.tokenizer_files = {"to`ken\n.json"};
  const std::string page = readme_text(facts);
  EXPECT_THAT(page, HasSubstr(R"('a\n```\n# title\x1b[0m')"));
  EXPECT_THAT(page, HasSubstr(R"(``a`b\n# c``)"));
  EXPECT_THAT(page, HasSubstr(R"(/d/a\`b\<script\>\\n\# title is not \*there\*)"));
  EXPECT_THAT(page, Not(AnyOf(HasSubstr("\n# title"), HasSubstr("\n# c"), HasSubstr("\x1b"))));
  facts.job.mutable_model()->set_name("gpt2");
  facts.job.mutable_model()->set_block(16);
  facts.job.mutable_data()->mutable_train()->set_format("text");
  EXPECT_THAT(input_text(facts), HasSubstr(R"(``to`ken\n.json``)"));
}

// lockstep.json describes documents only for tokens: a table has none.
TEST(InputCard, OnlyTokensHaveDocuments) {
  for (const auto& [model, format] :
       {std::pair("mlp", "csv"), std::pair("cnn", "idx"), std::pair("resnet18", "image_folder"),
        std::pair("exported", "arrow"), std::pair("mlp", "npy")}) {
    ModelFacts facts = facts_of(model, format);
    facts.job.mutable_data()->set_documents("stream");
    facts.job.mutable_data()->set_document_end("3");
    EXPECT_FALSE(input_json(facts).contains("documents")) << format;
    EXPECT_FALSE(input_json(facts).contains("document_end")) << format;
  }
  for (const auto& [model, format] : {std::pair("gpt2", "text"), std::pair("exported", "tokens")}) {
    ModelFacts facts = facts_of(model, format);
    facts.job.mutable_data()->set_documents("pack");
    EXPECT_EQ(input_json(facts)["documents"], "pack") << model;
  }
}

TEST(InputCard, MasksAndTokensSayWhatTheyAre) {
  ModelFacts masks = facts_of("exported", "image_mask");
  masks.job.mutable_data()->add_targets("masks");
  EXPECT_EQ(input_json(masks)["masks"]["names"], Json::array({"masks"}));
  EXPECT_THAT(input_text(masks), HasSubstr("Masks are uint8"));
  ModelFacts tokens = facts_of("gpt2", "text");
  tokens.job.mutable_model()->set_block(16);
  tokens.outputs = 256;
  EXPECT_EQ(input_json(tokens)["dtype"], "int64");
  EXPECT_EQ(input_json(tokens)["vocabulary"], 256);
  EXPECT_THAT(input_text(tokens), HasSubstr("A token is a byte"));
}

TEST(ModelCard, AFileThat8BitsMakeLargerIsTold) {
  ModelFacts facts = facts_of("exported", "idx");
  facts.int8 = Int8Facts{.form = "dynamic", .counts = {}};
  facts.measured = Measurement();
  facts.measured->models = {{.what = "the checkpoint's", .file_bytes = 1000},
                            {.what = "in 8 bits", .file_bytes = 900}};
  EXPECT_THAT(figures_text(facts), Not(HasSubstr("larger")));
  facts.measured->models[1].file_bytes = 1200;
  EXPECT_THAT(figures_text(facts), HasSubstr("1200 bytes in place of 1000"));
  EXPECT_THAT(readme_text(facts), HasSubstr("without --int8"));
  facts.measured->why_not = "there are no evaluation data";
  EXPECT_THAT(figures_text(facts), HasSubstr("1200 bytes in place of 1000"));
}

}  // namespace
}  // namespace lockstep
