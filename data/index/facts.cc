#include "data/index/facts.h"

namespace lockstep::data {
namespace {

std::string shape_text(const SampleShape& shape) {
  if (shape.is_sequence()) return "sequences of " + std::to_string(shape.tokens) + " tokens";
  if (shape.is_row) return "rows of " + std::to_string(shape.channels) + " columns";
  return "images of " + std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width) + " (C x H x W)";
}

}  // namespace

wire::DataFacts make_data_facts(const Dataset& train, const Dataset* eval) {
  wire::DataFacts facts;
  facts.set_train_fingerprint(train.fingerprint());
  facts.set_train_samples(train.samples());
  if (eval != nullptr) {
    facts.set_eval_fingerprint(eval->fingerprint());
    facts.set_eval_samples(eval->samples());
  }
  return facts;
}

Status check_eval_fits_train(const Dataset& train, const Dataset& eval) {
  SampleShape shape = eval.shape();
  shape.token_bytes = train.shape().token_bytes;  // a matter of the files, and so is the next
  shape.channels_last = train.shape().channels_last;
  if (!(train.shape() == shape))
    return Status(Code::kBadData, "evaluation samples are " + shape_text(shape) +
                                      ", training samples " + shape_text(train.shape()) +
                                      "; they must be alike");
  const auto names = train.class_names();
  const auto eval_names = eval.class_names();
  if (!names.empty() && !eval_names.empty() && names != eval_names)
    return Status(Code::kBadData, "the classes of " + eval.files().front() + " are not those of " +
                                      train.files().front() +
                                      ", by their names, so that labels would mean different "
                                      "things; give both the same directories, empty ones too");
  if (eval.classes() > train.classes())
    return Status(Code::kBadData,
                  "evaluation data have label " + std::to_string(eval.classes() - 1) +
                      ", the largest in the training data is " +
                      std::to_string(train.classes() - 1) +
                      (shape.is_sequence() ? "; set model.vocab to the number of all tokens"
                                           : "; they do not belong together"));
  return Status::ok();
}

}  // namespace lockstep::data
