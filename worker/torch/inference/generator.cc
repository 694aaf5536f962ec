#include "worker/torch/inference/generator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

void Generator::begin(std::span<const int64_t> prompt) {
  session_.forget();
  const auto most = static_cast<size_t>(session_.block());
  prompt = prompt.last(std::min(prompt.size(), most));
  text_.assign(prompt.begin(), prompt.end());
  unread_ = text_;
  index_ = 0;
}

Result<uint32_t> Generator::next() {
  if (session_.length() + static_cast<int64_t>(unread_.size()) > session_.block()) {
    session_.forget();
    const auto half = static_cast<std::ptrdiff_t>(std::max<int64_t>(session_.block() / 2, 1));
    text_.erase(text_.begin(), text_.end() - half);
    unread_ = text_;
  }
  const at::Tensor logits = session_.read(unread_).contiguous();
  std::vector<float> values(logits.const_data_ptr<float>(),
                            logits.const_data_ptr<float>() + logits.numel());
  float most = -std::numeric_limits<float>::infinity();
  for (size_t token = 0; token < values.size(); ++token) {
    if (std::isnan(values[token]))
      return Status(Code::kBadData,
                    "the model gives no number for a token: its weights are not "
                    "finite; take an earlier checkpoint (--checkpoint STEP)");
    if (!may_be_[token]) values[token] = -std::numeric_limits<float>::infinity();
    most = std::max(most, values[token]);
  }
  if (!std::isfinite(most))
    return Status(Code::kBadData,
                  "the model gives no token that its tokenizer knows; use the "
                  "tokenizer that it was trained with");
  const uint32_t token = next_token(values, rule_, index_++);
  text_.push_back(token);
  unread_ = {static_cast<int64_t>(token)};
  return token;
}

}  // namespace lockstep
