#include "data/dataset/facts.h"

#include "data/dataset/float_image.h"
#include "data/dataset/id_row.h"

namespace lockstep::data {
namespace {

std::string shape_text(const SampleShape& shape) {
  if (shape.is_sequence()) return "sequences of " + std::to_string(shape.tokens) + " tokens";
  const std::string fields = shape.fields == nullptr ? "" : " with " + text_of(*shape.fields);
  if (shape.is_row) return "rows of " + std::to_string(shape.channels) + " columns" + fields;
  if (shape.float_bytes > 0) return floats_text(shape) + fields;
  if (shape.has_ids()) return ids_text(shape) + fields;
  return "images of " + std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width) + " (C x H x W)" + fields;
}

// A data set without names differs from none.
bool differ(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  return !names.empty() && !others.empty() && names != others;
}

// The first sample of `eval` with the largest label, by its file, with the label.
std::string largest_label_text(const Dataset& eval) {
  const uint32_t largest = eval.classes() - 1;
  const std::string text = " has label " + std::to_string(largest);
  const auto labels = eval.as<Labels>();
  for (uint64_t i = 0; labels && i < eval.samples(); ++i) {
    const auto [from, number] = labels->at(i);
    if (from.label(number) == largest) return eval.label_name_of(i) + text;
  }
  return first_file(eval) + text;
}

}  // namespace

std::string first_file(const Dataset& dataset) {
  return dataset.files().empty() ? "the data" : dataset.files().front();
}

wire::DataFacts make_data_facts(const Dataset& train, const Dataset* eval) {
  wire::DataFacts facts;
  facts.set_train_fingerprint(train.fingerprint());
  facts.set_train_samples(epoch_units(train));
  for (const MixedPart& part : train.parts()) {
    wire::MixedFacts& mixed = *facts.add_mixed();
    mixed.set_fingerprint(part.fingerprint);
    mixed.set_samples(part.samples);
    mixed.set_weight(part.weight);
  }
  if (eval != nullptr) {
    facts.set_eval_fingerprint(eval->fingerprint());
    facts.set_eval_samples(eval->samples());
  }
  return facts;
}

Status check_parts_fit(const Dataset& train, const Dataset& other) {
  const std::string both = first_file(other) + " cannot be mixed with " + first_file(train);
  const auto refused = [&](const std::string& why) {
    return Status(Code::kUsage, both + ": " + why);
  };
  SampleShape shape = other.shape();
  shape.token_bytes = train.shape().token_bytes;
  shape.channels_last = train.shape().channels_last;
  if (!(train.shape() == shape))
    return refused("the first has " + shape_text(other.shape()) + ", the second " +
                   shape_text(train.shape()) + "; bring all data of a mixture to one shape");
  if (train.is<Sequences>() != other.is<Sequences>())
    return refused("only one of them makes sequences of its documents");
  if (other.shape().token_bytes != train.shape().token_bytes)
    return refused("tokens are stored in " + std::to_string(other.shape().token_bytes) +
                   " bytes in the first and in " + std::to_string(train.shape().token_bytes) +
                   " in the second; write them alike");
  if (other.shape().channels_last != train.shape().channels_last)
    return refused("one stores images as (H, W, C), the other as (C, H, W); write them alike");
  if (train.is<EncodedImages>() != other.is<EncodedImages>())
    return refused(
        "only one holds images that Lockstep decodes, crops or resizes; write both in one format");
  if (differ(train.column_names(), other.column_names()))
    return refused(
        "their columns differ in name or order, so values would mean different things; write both "
        "with the same header");
  if (differ(train.class_names(), other.class_names()))
    return refused(
        "their class names differ, so labels would mean different things; give both the same class "
        "directories (empty ones too), or tables the same names of labels");
  return Status::ok();
}

Status check_eval_fits_train(const Dataset& train, const Dataset& eval) {
  SampleShape shape = eval.shape();
  // These may differ: they only say how files store samples.
  shape.token_bytes = train.shape().token_bytes;
  shape.channels_last = train.shape().channels_last;
  if (shape.float_bytes > 0 && train.shape().float_bytes > 0)
    shape.float_bytes = train.shape().float_bytes;
  if (shape.has_ids() && train.shape().has_ids()) {
    shape.id_bytes = train.shape().id_bytes;
    shape.has_signed_ids = train.shape().has_signed_ids;
  }
  if (!(train.shape() == shape))
    return Status(
        Code::kBadData,
        first_file(eval) + ": evaluation samples are " + shape_text(shape) + ", training samples " +
            shape_text(train.shape()) + "; bring both to one shape" +
            (train.shape().fields == nullptr ? ""
                                             : ", and their targets to one kind: all classes, or "
                                               "numbers with a fraction in both"));
  if (differ(train.column_names(), eval.column_names()))
    return Status(Code::kBadData, "the columns of " + eval.files().front() +
                                      " differ from those of " + train.files().front() +
                                      " in name or order; write both with the same header");
  if (differ(train.class_names(), eval.class_names()))
    return Status(Code::kBadData, "the class names of " + eval.files().front() +
                                      " differ from those of " + train.files().front() +
                                      ", so labels would mean different things; give both the same "
                                      "class directories, empty ones too");
  if (eval.classes() > train.classes())
    return Status(Code::kBadData,
                  largest_label_text(eval) + ", the largest in the training data is " +
                      std::to_string(train.classes() - 1) +
                      (shape.is_sequence() ? "; set model.vocab to the number of all tokens"
                                           : "; they do not belong together"));
  return Status::ok();
}

}  // namespace lockstep::data
