#include "data/index/facts.h"

namespace lockstep::data {
namespace {

std::string shape_text(const SampleShape& shape) {
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width);
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
  if (!(train.shape() == eval.shape()))
    return Status(Code::kBadData, "evaluation samples are " + shape_text(eval.shape()) +
                                      " (C x H x W), training samples " +
                                      shape_text(train.shape()) + "; they must be alike");
  if (eval.classes() > train.classes())
    return Status(Code::kBadData,
                  "evaluation data have label " + std::to_string(eval.classes() - 1) +
                      ", the largest in the training data is " +
                      std::to_string(train.classes() - 1) + "; they do not belong together");
  return Status::ok();
}

}  // namespace lockstep::data
