#include "deploy/cli/script/python_module.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "comm/base/log.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 1024;
constexpr char kMain[] = "__main__.py";  // of a package that can be run

// A letter of other alphabets may stand in a name, too.
bool is_letter(unsigned char c) {
  return std::isalpha(c) != 0 || c == '_' || c >= 0x80;
}

bool is_name(std::string_view name) {
  return !name.empty() && is_letter(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return is_letter(c) || std::isdigit(c) != 0; });
}

bool is_module_name(std::string_view module) {
  if (module.size() > kMostBytes) return false;
  while (true) {
    const size_t dot = module.find('.');
    if (!is_name(module.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    module.remove_prefix(dot + 1);
  }
}

std::string as_path(std::string_view module) {
  std::string path(module);
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// In Python's order: a package, a module, a folder without __init__.py. Empty: none of them.
Result<std::string> module_below(const fs::path& folder, const std::string& module) {
  const fs::path inner = folder / as_path(module);
  const fs::path file = inner.string() + ".py";
  if (is_file(inner / kMain) && (is_file(inner / "__init__.py") || !is_file(file)))
    return (inner / kMain).string();
  if (is_file(inner / "__init__.py"))
    return Status(Code::kUsage, "the module " + module + " is a package, and has no " + kMain +
                                    " that could be run; name a module in it, as in " + module +
                                    ".train");
  return is_file(file) ? file.string() : std::string();
}

Status no_name(const std::string& module) {
  std::string hint = "as in proj.train";
  std::string_view name = module;
  if (name.ends_with(".py")) name.remove_suffix(3);
  std::string dotted(name);
  std::replace(dotted.begin(), dotted.end(), '/', '.');
  if (dotted != module && is_module_name(dotted)) hint = "as in -m " + dotted;
  return Status(Code::kUsage,
                "\"" + json_escape(module.substr(0, 120)) +
                    "\" is no name of a module: write it with dots, and without .py, " + hint +
                    "; a file is named without -m");
}

}  // namespace

Result<std::string> find_module(const std::string& module, const std::string& folder,
                                const ImportedFrom& imported_from) {
  if (!is_module_name(module) || module.ends_with(".py")) return no_name(module);
  const fs::path here = fs::path(folder).lexically_normal();
  LOCKSTEP_ASSIGN_OR_RETURN(std::string found, module_below(here, module));
  if (!found.empty()) return found;
  const std::string package = module.substr(0, module.find('.'));
  const fs::path installed = imported_from(package);
  if (!installed.empty() && installed.stem() != package)
    return Status(Code::kUsage, "Python imports " + package + " from " + installed.string() +
                                    ", which has another name; name the file of " + module +
                                    " itself, without -m");
  if (!installed.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(found, module_below(installed.parent_path(), module));
    if (!found.empty()) return found;
  }
  const std::string file = as_path(module) + ".py";
  const std::string elsewhere = installed.empty()
                                    ? ", and Python finds no " + package + " elsewhere"
                                    : " or " + installed.parent_path().string();
  const auto below_src = module_below(here / "src", module);
  const std::string advice =
      below_src.is_ok() && !below_src->empty()
          ? "; it is in src: install the package (pip install -e .), or set PYTHONPATH=src"
          : "; start it in the folder that holds " + package +
                ", or put that folder into PYTHONPATH";
  return Status(Code::kNoInput, "there is no module " + module + ": no " + file + " in " +
                                    here.string() + elsewhere + advice);
}

std::string folder_of_module(const std::string& path, std::string_view module) {
  for (const std::string& end :
       {"/" + as_path(module) + ".py", "/" + as_path(module) + "/" + kMain}) {
    if (!path.ends_with(end)) continue;
    const std::string folder = path.substr(0, path.size() - end.size());
    return folder.empty() ? "/" : folder;
  }
  return {};
}

}  // namespace lockstep
