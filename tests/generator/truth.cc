// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/plan.h"
#include "tests/generator/text.h"

namespace rankscope::generator {
namespace {

// Codes, names and node names: nothing in them needs escaping.
std::string Quoted(const std::string& text) {
  return '"' + text + '"';
}

std::string List(const std::vector<std::string>& of) {
  std::string out = "[";
  for (const std::string& one : of) out += (out.size() > 1 ? "," : "") + Quoted(one);
  return out + "]";
}

std::string List(const std::vector<int>& of) {
  std::string out = "[";
  for (const int one : of) out += (out.size() > 1 ? "," : "") + std::to_string(one);
  return out + "]";
}

const char* Word(bool value) {
  return value ? "true" : "false";
}

}  // namespace

std::string TruthJson(const Truth& t) {
  std::string out = Text("{\"seed\":%llu,", static_cast<unsigned long long>(t.seed));
  out += "\"family\":" + Quoted(t.family) + ",\"accepted\":" + List(t.accepted);
  out += ",\"sub\":" + Quoted(t.sub) + ",\"accepted_subs\":" + List(t.accepted_subs);
  out += ",\"second\":" + Quoted(t.second) + ",\"ranks\":" + List(t.ranks);
  out += ",\"gpus\":" + List(t.gpus) + ",\"node\":" + Quoted(t.node);
  out += Text(",\"onset\":%.3f,\"disposition\":", t.onset) + Quoted(t.disposition);
  out += Text(",\"decidable\":%s,\"healthy\":%s,\"culprit_seen\":%s", Word(t.decidable),
              Word(t.healthy), Word(t.culprit_seen));
  out += ",\"stores\":" + List(t.stores) + ",\"observed_node\":" + Quoted(t.observed_node);
  out += ",\"dialect\":" + Quoted(t.dialect);
  out += Text(",\"world\":%d,\"seconds\":%.1f}\n", t.world, t.seconds);
  return out;
}

}  // namespace rankscope::generator
