// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Files that are replaced as a whole, and the seal by which a reader knows that one was kept as it
// was written. Any thread; all of it waits for the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detectors/model/result.h"

namespace rankscope::exporter {

// A job id as a file name: what is not a letter, digit, '-', '_' or '.' becomes %XX; never "." or
// "..", at most 200 bytes.
std::string FileNameOf(std::string_view job_id);

// Writes `content` to `path` so that readers see the old or the new file; fsynced. The name itself
// is on the disk after SyncFolder.
Status ReplaceFile(const std::string& path, std::string_view content);
// What is not there is removed already.
Status RemoveFile(const std::string& path);
Status SyncFolder(const std::string& path);

// A serialised message whose first field, number 1015, holds the checksum (CRC-32 of ISO 3309, as
// zlib's crc32) and the length of what follows; readers that do not know it pass over it.
std::string SealMessage(std::string_view message);

// The message of such a file, in `bytes`; nullopt: it is not as it was written. What begins with
// field 1, a string, was written before there were seals, and what begins with field 1000 before
// they had this checksum: both are taken as they are.
std::optional<std::string_view> OpenMessage(std::string_view bytes);

// The same for a line: the checksum is the file's second line.
std::string SealLine(std::string_view line);
std::optional<std::string_view> OpenLine(std::string_view text);

}  // namespace rankscope::exporter
