// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the threads that talk to clients may ask of the kernel: to read and write on what is open,
// to accept, and to have memory. Should a client ever get code of his own to run there, he opens no
// file, starts no program and reaches no other process.
#pragma once

#include "detectors/model/result.h"

namespace rankscope::http {

// For the calling thread, for good. A call that is not on the list fails with EPERM, which the C
// library can cope with wherever it asks on its own account (a file of /sys about CPUs, say). The
// error says what this kernel lacks; then nothing has changed.
Status RestrictThread();

}  // namespace rankscope::http
