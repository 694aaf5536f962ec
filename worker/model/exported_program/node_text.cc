#include "worker/model/exported_program/node_text.h"

#include "comm/base/text/printable.h"

namespace lockstep::exported {
namespace {

constexpr std::string_view kFrame = "File \"";
constexpr size_t kLongestLine = 200;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// `frame`: 'File "PATH", line N, in FUNCTION\n    CODE', without its first six bytes.
std::string frame_text(std::string_view frame) {
  const std::string_view path = frame.substr(0, frame.find('"'));
  std::string_view rest = frame.substr(path.size());
  const size_t line = rest.find(", line ");
  const size_t end = rest.find('\n');
  std::string text(path);
  if (line != std::string_view::npos && line < end)
    text += rest.substr(line, rest.find_first_of(",\n", line + 2) - line);
  if (end != std::string_view::npos) {
    const std::string_view code = trimmed(rest.substr(end, rest.find('\n', end + 1) - end));
    if (!code.empty()) text.append(": ").append(code);
  }
  return printable(std::string_view(text).substr(0, kLongestLine));
}

// How near a frame is to the user's code. Code that PyTorch generates while it traces, as of
// torch.while_loop, has a name like <eval_with_key>.5 and stands in no file.
enum class FrameOf : uint8_t { kGenerated, kPyTorch, kInstalledPackage, kUser };

FrameOf owner_of(std::string_view frame) {
  const std::string_view path = frame.substr(0, frame.find('"'));
  const auto has = [&](std::string_view part) { return path.find(part) != std::string_view::npos; };
  if (path.starts_with("<eval_with_key>")) return FrameOf::kGenerated;
  if (path.starts_with("torch/") || has("-packages/torch/")) return FrameOf::kPyTorch;
  return has("site-packages") || has("dist-packages") ? FrameOf::kInstalledPackage : FrameOf::kUser;
}

}  // namespace

std::string user_line(std::string_view stack_trace) {
  std::string_view chosen;
  FrameOf owner = FrameOf::kGenerated;
  for (size_t at = stack_trace.find(kFrame); at != std::string_view::npos;) {
    const size_t next = stack_trace.find(kFrame, at + kFrame.size());
    const auto frame = stack_trace.substr(at + kFrame.size(), next == std::string_view::npos
                                                                  ? std::string_view::npos
                                                                  : next - at - kFrame.size());
    if (owner_of(frame) >= owner) {
      chosen = frame;
      owner = owner_of(frame);
    }
    at = next;
  }
  return chosen.empty() ? std::string() : frame_text(chosen);
}

std::vector<ModuleOfNode> modules_of(std::string_view nn_module_stack) {
  std::vector<ModuleOfNode> modules;
  while (!nn_module_stack.empty()) {
    const std::string_view one = nn_module_stack.substr(0, nn_module_stack.find(';'));
    nn_module_stack.remove_prefix(std::min(one.size() + 1, nn_module_stack.size()));
    const size_t type = one.rfind(',');
    if (type == std::string_view::npos || type == 0) continue;
    const size_t path = one.rfind(',', type - 1);
    if (path == std::string_view::npos) continue;
    modules.push_back(
        {std::string(one.substr(path + 1, type - path - 1)), std::string(one.substr(type + 1))});
  }
  return modules;
}

}  // namespace lockstep::exported
