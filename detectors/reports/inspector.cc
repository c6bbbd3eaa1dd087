// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/inspector.h"

#include "detectors/reports/json.h"

namespace rankscope::reports {
namespace {

using Id = Tree::Id;

constexpr double kGiga = 1e9;  // its GB are decimal

int32_t Small(const Tree& tree, Id id, int32_t otherwise) {
  const auto number = tree.Int(id);
  return number && *number >= 0 && *number <= INT32_MAX ? static_cast<int32_t>(*number) : otherwise;
}

double Scaled(const Tree& tree, Id id, double scale) {
  const auto number = tree.Number(id);
  return number && *number >= 0 ? *number * scale : -1;
}

}  // namespace

std::optional<InspectorRecord> ReadInspectorLine(std::string_view line) {
  const Result<Document> read = ReadJson(line);
  if (!read || read->cut) return std::nullopt;
  const Tree& tree = read->tree;
  const Id header = tree.Get(read->root, "header");
  if (!tree.is_dict(header)) return std::nullopt;
  const Id metadata = tree.Get(read->root, "metadata");
  InspectorRecord record;
  record.communicator = tree.String(tree.Get(header, "id"));
  record.rank = Small(tree, tree.Get(header, "rank"), -1);
  record.ranks = Small(tree, tree.Get(header, "n_ranks"), 0);
  record.nodes = Small(tree, tree.Get(header, "nnodes"), 0);
  record.host = tree.String(tree.Get(metadata, "hostname"));
  record.pid = tree.Int(tree.Get(metadata, "pid")).value_or(-1);
  record.dumped_us = tree.Int(tree.Get(metadata, "dump_timestamp_us")).value_or(0);
  if (const Id stats = tree.Get(read->root, "dump_stats"); tree.is_dict(stats)) {
    record.dropped = tree.Int(tree.Get(stats, "coll_dropped_since_last_dump")).value_or(0) +
                     tree.Int(tree.Get(stats, "p2p_dropped_since_last_dump")).value_or(0);
    return record;
  }
  Id of = tree.Get(read->root, "coll_perf");
  record.peer_to_peer = !tree.is_dict(of);
  if (record.peer_to_peer) of = tree.Get(read->root, "p2p_perf");
  if (!tree.is_dict(of)) return std::nullopt;
  const std::string prefix = record.peer_to_peer ? "p2p" : "coll";
  const auto member = [&](std::string_view name) {
    return tree.Get(of, prefix + std::string(name));
  };
  record.operation = tree.String(member(""));
  record.sequence = tree.Int(member("_sn")).value_or(-1);
  record.bytes = tree.Int(member("_msg_size_bytes")).value_or(-1);
  record.seconds = Scaled(tree, member("_exec_time_us"), 1e-6);
  record.algorithm_bytes_per_second = Scaled(tree, member("_algobw_gbs"), kGiga);
  record.bus_bytes_per_second = Scaled(tree, member("_busbw_gbs"), kGiga);
  const std::string_view source = tree.String(member("_timing_source"));
  record.timed_on_gpu = source.empty() || source == "kernel_gpu";
  return record;
}

}  // namespace rankscope::reports
