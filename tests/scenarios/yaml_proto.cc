// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/scenarios/yaml_proto.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "detectors/model/signals.h"
#include "detectors/proto/recording.pb.h"

namespace rankscope::scenarios {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int64_t kTicksPerPid =
    10;  // a process named by its pid alone started at this many ticks times the pid

[[noreturn]] void Fail(const YAML::Node& node, const std::string& what) {
  throw YAML::Exception(node.Mark(), what);
}

int32_t WaitStatus(const YAML::Node& node) {
  const auto text = node.as<std::string>();
  if (text.starts_with("exit ")) return std::stoi(text.substr(5)) << 8;
  if (text.starts_with("signal ")) return std::stoi(text.substr(7));
  return node.as<int32_t>();
}

// `begin` is BEGIN; `lf` is LF.
int EnumNumber(const FieldDescriptor& field, const YAML::Node& node) {
  std::string name = node.as<std::string>();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto* value = field.enum_type()->FindValueByName(name);
  if (value == nullptr)
    Fail(node, "'" + name + "' is not a value of " + field.enum_type()->full_name());
  return value->number();
}

void AddScalar(Message& message, const FieldDescriptor& field, const YAML::Node& node) {
  const auto& reflection = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const int32_t value = field.name() == "wait_status" ? WaitStatus(node) : node.as<int32_t>();
      many ? reflection.AddInt32(&message, &field, value)
           : reflection.SetInt32(&message, &field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const auto value = node.as<int64_t>();
      many ? reflection.AddInt64(&message, &field, value)
           : reflection.SetInt64(&message, &field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      const auto value = node.as<uint32_t>();
      many ? reflection.AddUInt32(&message, &field, value)
           : reflection.SetUInt32(&message, &field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto value = node.as<float>();
      many ? reflection.AddFloat(&message, &field, value)
           : reflection.SetFloat(&message, &field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.SetBool(&message, &field, node.as<bool>());
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnumValue(&message, &field, EnumNumber(field, node));
      return;
    case FieldDescriptor::CPPTYPE_STRING: {
      const auto value = node.as<std::string>();
      many ? reflection.AddString(&message, &field, value)
           : reflection.SetString(&message, &field, value);
      return;
    }
    default:
      Fail(node, "field " + field.full_name() + " cannot be written in a scenario");
  }
}

void FillSamples(proto::SampleBatch& batch, const YAML::Node& values) {
  for (const auto& entry : values) {
    const auto name = entry.first.as<std::string>();
    const auto table = SignalTable();
    const auto row = std::find_if(table.begin(), table.end(),
                                  [&](const SignalRow& signal) { return signal.name == name; });
    if (row == table.end()) Fail(entry.first, "no signal is called '" + name + "'");
    batch.add_signal(static_cast<uint32_t>(row->id));
    batch.add_value(entry.second.as<float>());
  }
}

bool IsPair(const FieldDescriptor& field) {
  return field.message_type() == proto::KeyValue::descriptor() ||
         field.message_type() == proto::IntKv::descriptor();
}

void FillField(Message& message, const FieldDescriptor& field, const YAML::Node& node) {
  const auto& reflection = *message.GetReflection();
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    if (!field.is_repeated()) return AddScalar(message, field, node);
    for (const auto& item : node) AddScalar(message, field, item);
  } else if (!field.is_repeated()) {
    FillMessage(*reflection.MutableMessage(&message, &field), node);
  } else if (IsPair(field)) {
    for (const auto& entry : node) {
      Message& pair = *reflection.AddMessage(&message, &field);
      AddScalar(pair, *pair.GetDescriptor()->FindFieldByName("key"), entry.first);
      AddScalar(pair, *pair.GetDescriptor()->FindFieldByName("value"), entry.second);
    }
  } else {
    for (const auto& item : node) FillMessage(*reflection.AddMessage(&message, &field), item);
  }
}

}  // namespace

void FillMessage(Message& message, const YAML::Node& node) {
  if (auto* key = dynamic_cast<proto::ProcessKey*>(&message); key != nullptr && node.IsScalar()) {
    key->set_pid(node.as<int32_t>());
    key->set_start_ticks(kTicksPerPid * key->pid());
    return;
  }
  for (const auto& entry : node) {
    const auto name = entry.first.as<std::string>();
    if (auto* batch = dynamic_cast<proto::SampleBatch*>(&message);
        batch != nullptr && name == "values") {
      FillSamples(*batch, entry.second);
      continue;
    }
    const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      Fail(entry.first, "'" + name + "' is not a field of " + message.GetDescriptor()->full_name());
    }
    FillField(message, *field, entry.second);
  }
}

}  // namespace rankscope::scenarios
