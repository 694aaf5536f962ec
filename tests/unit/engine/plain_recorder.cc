#include "tests/unit/engine/plain_recorder.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace lockstep::testing {
namespace {

// LibTorch's hooks are plain functions, of one thread here: so is what they find their module by.
thread_local PlainModule* told_module = nullptr;

void write(std::ostream& out, const at::IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor& tensor = value.toTensor();
    out << " tensor" << tensor.sizes();
    if (tensor.has_storage() && told_module->is_mine(tensor.const_data_ptr()))
      out << '@' << tensor.const_data_ptr();
  } else if (value.isScalar() || value.isBool()) {
    out << ' ' << value;
  }
}

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction& function) {
  std::ostringstream line;
  line << function.name();
  for (const at::IValue& input : function.inputs()) write(line, input);
  told_module->told->push_back(line.str());
  return nullptr;
}

}  // namespace

class PlainRecorder::Kept final : public Recording {
 public:
  Kept(PlainRecorder& recorder, std::function<Status()> body, std::vector<std::string> told)
      : recorder_(recorder), body_(std::move(body)), told_(std::move(told)) {}

  Status replay() override {
    ++recorder_.replays;
    Status status;
    const std::vector<std::string> now = recorder_.run(body_, &status);
    const auto [is, was] = std::mismatch(now.begin(), now.end(), told_.begin(), told_.end());
    if (is != now.end() || was != told_.end())
      ADD_FAILURE() << "a graph would have done what it recorded:\n  "
                    << (was == told_.end() ? "nothing" : *was) << "\nand not\n  "
                    << (is == now.end() ? "nothing" : *is);
    return status;
  }

 private:
  PlainRecorder& recorder_;
  const std::function<Status()> body_;
  const std::vector<std::string> told_;
};

std::vector<std::string> PlainRecorder::run(const std::function<Status()>& body, Status* status) {
  std::vector<std::string> told;
  told_module = &module_;
  module_.told = &told;
  const at::CallbackHandle hook =
      at::addThreadLocalCallback(at::RecordFunctionCallback(operator_begins)
                                     .needsInputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
  try {
    *status = body();
  } catch (const std::exception& e) {
    *status = Status(Code::kInternal, e.what());
  }
  at::removeCallback(hook);
  module_.told = nullptr;
  told_module = nullptr;
  return told;
}

Status PlainRecorder::empty_cache() {
  if (module_.bytes_left) *module_.bytes_left += std::exchange(module_.cached_by_torch, 0);
  return Status::ok();
}

Result<std::unique_ptr<Recording>> PlainRecorder::record(const std::function<Status()>& body) {
  ++recordings;
  const PlainModule::Snapshot before = module_.snapshot();
  if (throws) module_.throws_in_backward = true;
  Status status;
  std::vector<std::string> told = run(body, &status);
  module_.throws_in_backward = false;
  module_.restore(before);
  if (status.is_ok() && fails) {
    ++refused_;  // the reason may be memory
    status = Status(Code::kInternal, "the capture was invalidated");
  }
  LOCKSTEP_RETURN_IF_ERROR(status);
  if (first.empty()) first = told;
  return std::unique_ptr<Recording>(std::make_unique<Kept>(*this, body, std::move(told)));
}

PlainRecorder& add_recorder(PlainModule& module) {
  auto recorder = std::make_unique<PlainRecorder>(module);
  PlainRecorder& added = *recorder;
  module.give(std::move(recorder));
  return added;
}

}  // namespace lockstep::testing
