// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "detectors/model/host_list.h"
#include "exporter/slurm/fields.h"
#include "exporter/slurm/json_fields.h"
#include "exporter/slurm/json_reader.h"
#include "exporter/slurm/json_records.h"
#include "exporter/slurm/json_values.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr Field<SlurmNode> kNodeFields[] = {
    {"name", SetText<&SlurmNode::name>},
    {"reason", SetText<&SlurmNode::reason>},
    {"reason_set_by_user", SetText<&SlurmNode::reason_by>},
    {"reason_changed_at", SetTime<&SlurmNode::reason_since>},
    {"boot_time", SetTime<&SlurmNode::boot>},
    {"slurmd_start_time", SetTime<&SlurmNode::slurmd_start>},
    {"cpus", SetNumber<&SlurmNode::cpus>},
    {"alloc_cpus", SetNumber<&SlurmNode::cpus_allocated>},
    {"real_memory", SetMegabytes<&SlurmNode::memory_bytes>},
    {"alloc_memory", SetMegabytes<&SlurmNode::memory_allocated_bytes>},
    {"free_memory", SetMegabytes<&SlurmNode::memory_free_bytes>},
    {"free_mem", SetMegabytes<&SlurmNode::memory_free_bytes>},
    {"slurmd_version", SetText<&SlurmNode::version>},
    {"version", SetText<&SlurmNode::version>},
};

void ReadStates(const Json& states, const Json& flags, SlurmNode& node) {
  std::vector<std::string> words = Texts(states);
  for (std::string& word : Texts(flags)) words.push_back(std::move(word));
  SetState(NodeStateOf(words), node);
}

bool ReadNode(const Json& value, SlurmNode& node) {
  SetFields(value, kNodeFields, node);
  ReadStates(At(value, "state"), At(value, "state_flags"), node);
  for (const std::string& name : Texts(At(value, "partitions"))) {
    if (node.partitions.size() + name.size() < kMaxField) {
      node.partitions += (node.partitions.empty() ? "" : ",") + name;
    }
  }
  // In hundredths, as the kernel's average times 100.
  if (const auto load = Number(At(value, "cpu_load"))) {
    node.cpu_load = static_cast<double>(*load) / 100;
  }
  const auto counted = Gpus(At(value, "tres"));
  if (counted && *counted > 0) {
    node.gpus = counted;
    node.gpus_allocated = Gpus(At(value, "tres_used")).value_or(0);
  } else {
    const std::string gres = Text(At(value, "gres"), kMaxField);
    node.gpus = gres.empty() ? counted : GpusOfGres(gres);
    node.gpus_allocated = GpusOfGres(Text(At(value, "gres_used"), kMaxField));
  }
  return !node.name.empty() && !(node.state.empty() && node.state_flags.empty());
}

// Nodes that sinfo has put together, because they agree in what it shows.
class NodeGroups {
 public:
  explicit NodeGroups(Read<SlurmNode>& read) : read_(read) {}

  void Add(const Json& group) {
    std::vector<std::string> names;
    for (const std::string& list : Texts(At(At(group, "nodes"), "nodes"))) {
      HostNames hosts = ExpandHostList(list);
      if (!hosts.whole) ++read_.unreadable;
      std::move(hosts.names.begin(), hosts.names.end(), std::back_inserter(names));
    }
    SlurmNode node;
    ReadStates(At(At(group, "node"), "state"), Json(), node);
    const Json& reason = At(group, "reason");
    node.reason = Text(At(reason, "description"), kMaxField);
    node.reason_by = Text(At(reason, "user"), kMaxField);
    node.reason_since = Time(At(reason, "time"));
    node.partitions = Text(At(At(group, "partition"), "name"), kMaxField);
    if (names.size() == 1) {
      node.cpus = Number(At(At(group, "cpus"), "total"));
      node.cpus_allocated = Number(At(At(group, "cpus"), "allocated"));
      node.gpus = GpusOfGres(Text(At(At(group, "gres"), "total"), kMaxField));
    }
    for (std::string& name : names) {
      if (read_.records.size() >= kMaxHosts) break;
      node.name = std::move(name);
      AddNode(node);
    }
  }

 private:
  // A node stands in a group for each of its partitions.
  void AddNode(const SlurmNode& node) {
    const auto [at, fresh] = at_.try_emplace(node.name, read_.records.size());
    if (fresh) {
      read_.records.push_back(node);
      return;
    }
    std::string& partitions = read_.records[at->second].partitions;
    if (partitions.size() + node.partitions.size() < kMaxField) partitions += "," + node.partitions;
  }

  Read<SlurmNode>& read_;
  std::unordered_map<std::string, size_t> at_;
};

}  // namespace

Read<SlurmNode> ReadNodeJson(std::string text) {
  Read<SlurmNode> read;
  NodeGroups groups(read);
  read.whole = ForEachJsonRecord(std::move(text), IsReadName, [&](const JsonRecord& record) {
    if (record.list == "sinfo") groups.Add(record.value);
    if (record.list != "nodes") return;
    SlurmNode node;
    if (ReadNode(record.value, node)) {
      read.records.push_back(std::move(node));
    } else {
      ++read.unreadable;
    }
  });
  if (!read.whole) ++read.unreadable;
  return read;
}

}  // namespace rankscope::exporter::slurm
