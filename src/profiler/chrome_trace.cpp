#include <brasa/profiler.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/output_file.h"

namespace brasa::profiler {

// The format's "complete" events: one process a device, one row a thread.
void profile::export_chrome_trace(const std::string& path) const {
  using Json = nlohmann::ordered_json;
  std::map<std::string, int> processes;
  Json list = Json::array();
  for (const Event& e : events()) {
    auto [process, added] = processes.try_emplace(e.device.str(), static_cast<int>(processes.size()));
    if (added)
      list.push_back(
          {{"ph", "M"}, {"name", "process_name"}, {"pid", process->second}, {"args", {{"name", e.device.str()}}}});
    Json event = {{"ph", "X"},       {"name", e.name}, {"cat", name(e.kind)}, {"pid", process->second},
                  {"tid", e.thread}, {"ts", e.start},  {"dur", e.duration}};
    Json& args = event["args"] = Json::object();
    if (e.bytes) args["bytes"] = e.bytes;
    if (e.flops > 0) args["flops"] = e.flops;
    if (e.memory) args["memory"] = e.memory;
    if (!e.shapes.empty()) args["shapes"] = e.shapes;
    if (!e.source.empty()) args["source"] = e.source;
    list.push_back(std::move(event));
  }
  std::string text = Json{{"traceEvents", std::move(list)}, {"displayTimeUnit", "ms"}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
  OutputFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace brasa::profiler
