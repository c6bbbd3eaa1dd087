// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What NCCL says of itself under NCCL_DEBUG=INFO (its version is a marker): interface, plugin,
// network, channels, GPUDirect, NVLink SHARP, and the variables that it obeys. Facts for a reader
// of a slow or hanging run, never a cause: the same lines stand in every healthy log. The wordings
// are those of src/init.cc, src/bootstrap.cc, src/plugin/net.cc and src/transport/*.cc from 2.4
// to 2.28.
#include <array>
#include <utility>

#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/progress/dialects.h"

namespace rankscope::logs {
namespace {

enum class Value : uint8_t {
  kWord,     // the word behind the phrase
  kRest,     // all behind the phrase, up to a semicolon
  kNumber,   // the number in front of the phrase
  kOnOff,    // "on" where the phrase goes on with "Enabled" or "available", else "off"
  kSetting,  // the variable's name, the phrase and the value: views cannot leave the phrase out
  kPhrase,   // the phrase itself
};

struct Fact {
  std::string_view name;
  std::string_view phrases[2];  // the second may be empty
  Value value;
  std::string_view example;
};

// The fallback before the general: a line is one fact.
constexpr Fact kFacts[] = {
    {"nccl_no_ib",
     {"NET/IB : No device found"},
     Value::kPhrase,
     "g5:77:93 [1] NCCL INFO NET/IB : No device found."},
    {"nccl_ib_devices",
     {"NET/IB : Using "},
     Value::kRest,
     "g5:77:93 [1] NCCL INFO NET/IB : Using [0]mlx5_3:1/RoCE [RO]; OOB ens7:10.3.2.1<0>"},
    {"nccl_socket",
     {"NET/Socket : Using "},
     Value::kRest,
     "g5:77:93 [1] NCCL INFO NET/Socket : Using [0]ens7:10.3.2.1<0>"},
    {"nccl_network",
     {"NCCL INFO Using network "},
     Value::kRest,
     "g5:77:93 [1] NCCL INFO Using network Socket"},
    {"nccl_interface",
     {"Bootstrap : Using ", "Bootstrap: Using "},
     Value::kWord,
     "g5:77:77 [1] NCCL INFO Bootstrap : Using ens7:10.3.2.1<0>"},
    {"nccl_plugin",
     {"Loaded net plugin "},
     Value::kRest,
     "g5:77:93 [1] NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v9)"},
    {"nccl_plugin_missing",
     {"libnccl-net.so: cannot open shared object file"},
     Value::kPhrase,
     "g5:77:77 [1] NCCL INFO NET/Plugin : Plugin load returned 17 : libnccl-net.so: cannot open "
     "shared object file: No such file or directory."},
    {"nccl_ofi_version",
     {"NET/OFI Initializing aws-ofi-nccl "},
     Value::kWord,
     "g5:77:93 [1] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.13.2"},
    {"nccl_ofi_provider",
     {"NET/OFI Selected Provider is "},
     Value::kWord,
     "g5:77:93 [1] NCCL INFO NET/OFI Selected Provider is efa (found 32 nics)"},
    {"nccl_channels",
     {" coll channels, "},
     Value::kNumber,
     "g5:77:93 [1] NCCL INFO 12 coll channels, 0 nvls channels, 16 p2p channels, 2 p2p channels "
     "per "
     "peer"},
    {"nccl_gdr",
     {"GPU Direct RDMA "},
     Value::kOnOff,
     "g5:77:93 [1] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_3'"},
    {"nccl_nvls",
     {"NVLS multicast support is "},
     Value::kOnOff,
     "g5:77:93 [1] NCCL INFO NVLS multicast support is not available on dev 1"},
    {"nccl_setting",
     {" set by environment to "},
     Value::kSetting,
     "g5:77:77 [1] NCCL INFO NCCL_PROTO set by environment to LL128"},
};

constexpr size_t kFactCount = std::size(kFacts);
constexpr size_t kValueCap = 120;

std::string_view WordBefore(std::string_view text) {
  const size_t space = text.find_last_of(" \t");
  return space == std::string_view::npos ? text : text.substr(space + 1);
}

bool ParseFact(const Fact& fact, const CleanLine& line, RecordList& out) {
  std::string_view phrase = fact.phrases[0];
  size_t at = line.text.find(phrase);
  if (at == std::string_view::npos && !fact.phrases[1].empty()) {
    phrase = fact.phrases[1];
    at = line.text.find(phrase);
  }
  if (at == std::string_view::npos) return false;
  const std::string_view before = line.text.substr(0, at);
  if (!Contains(before, "NCCL INFO ") && !phrase.starts_with("NCCL INFO ")) return false;
  const std::string_view rest = line.text.substr(at + phrase.size());
  Marker marker;
  marker.kind = MarkerKind::kFact;
  marker.name = fact.name;
  marker.offset = line.offset;
  marker.line = line.original.empty() ? line.text : line.original;
  switch (fact.value) {
    case Value::kWord:
      marker.text = rest.substr(0, rest.find_first_of(" \t"));
      break;
    case Value::kRest:
      marker.text = Trim(rest.substr(0, rest.find(';')));
      break;
    case Value::kNumber: {
      marker.text = WordBefore(before);
      const auto number = LeadingInt(marker.text);
      if (!number) return false;
      marker.number = static_cast<double>(*number);
      break;
    }
    case Value::kOnOff:
      marker.text = rest.starts_with("Enabled") || rest.starts_with("available") ? "on" : "off";
      break;
    case Value::kSetting: {
      const std::string_view name = WordBefore(before);
      if (!name.starts_with("NCCL_")) return false;
      marker.text = Trim(line.text.substr(at - name.size()));
      break;
    }
    case Value::kPhrase:
      marker.text = line.text.substr(at, phrase.size());
      break;
  }
  marker.text = Capped(marker.text, kValueCap);
  out.push_back(marker);
  return true;
}

template <size_t i>
bool ParseNth(const CleanLine& line, RecordList& out) {
  return ParseFact(kFacts[i], line, out);
}

template <size_t... i>
constexpr std::array<FormatRow, kFactCount> MakeRows(std::index_sequence<i...>) {
  return {FormatRow{kFacts[i].name, "nccl",
                    std::span(kFacts[i].phrases, kFacts[i].phrases[1].empty() ? 1 : 2), ParseNth<i>,
                    kFacts[i].example}...};
}

constexpr std::array<FormatRow, kFactCount> kRows =
    MakeRows(std::make_index_sequence<kFactCount>());

}  // namespace

std::span<const FormatRow> NcclFactRows() {
  return kRows;
}

}  // namespace rankscope::logs
