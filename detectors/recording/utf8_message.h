// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Text from the world is any bytes, and protobuf refuses to read back a string that is not UTF-8: a
// document that quotes a log must be made readable before it leaves. Any thread.
#pragma once

#include <google/protobuf/message.h>

namespace rankscope {

// Every string field of the message and of its parts, with U+FFFD for each byte that is no UTF-8.
void MakeUtf8(google::protobuf::Message& message);

}  // namespace rankscope
