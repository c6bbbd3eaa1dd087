// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/recording/utf8_message.h"

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "detectors/model/utf8.h"

namespace rankscope {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void MakeUtf8(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        MakeUtf8(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                      : *reflection.MutableMessage(&message, field));
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        std::string scratch;
        const std::string& text =
            field->is_repeated()
                ? reflection.GetRepeatedStringReference(message, field, i, &scratch)
                : reflection.GetStringReference(message, field, &scratch);
        if (IsUtf8(text)) continue;
        std::string readable = ToUtf8(text);
        if (field->is_repeated()) {
          reflection.SetRepeatedString(&message, field, i, std::move(readable));
        } else {
          reflection.SetString(&message, field, std::move(readable));
        }
      }
    }
  }
}

}  // namespace rankscope
