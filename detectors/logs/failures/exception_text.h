// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What an exception is by its words: which IncidentKind, which role, which captured values; and
// where in the program its frames place it. Used by the traceback machine and by the single-line
// shapes, so that a text means the same with and without its traceback. Private to detectors/logs;
// pure, any thread.
#pragma once

#include <span>
#include <string_view>

#include "detectors/logs/failures/traceback.h"
#include "detectors/logs/record.h"

namespace rankscope::logs {

// A line that ends a traceback, or stands alone: "torch.cuda.OutOfMemoryError: CUDA out of memory",
// "KeyboardInterrupt".
struct ExceptionLine {
  std::string_view type;     // dotted; empty: not such a line
  std::string_view message;  // behind the colon
};

// `after_frame`: the line stands where a traceback must end, so that any CamelCase name is a type.
ExceptionLine ParseExceptionLine(std::string_view text, bool after_frame);

// Whether the line is read by the row of lone exceptions or of std::terminate: other rows leave it
// to them.
bool HasOwnRow(std::string_view text);

// Decides kind, role, sub, fields from exception_type (if any) and the whole text of the message,
// with the frames' FrameKind already set. Returns whether a rule more telling than "an exception"
// applied. Fields are appended.
bool ClassifyText(std::string_view text, Incident& incident);

// Whether its kind stays true when a vaguer exception is raised in its wake.
bool OutlivesChain(const Incident& incident);

// Notes in a field that nobody caught it, where the frames begin with the program's first line.
// What is caught and logged is shown from where that is done.
void NoteUncaught(std::string_view outermost, Incident& incident);
// The same of an exception that takes the place of another.
void KeepUncaught(const Incident& other, Incident& incident);

// FrameKind of the innermost telling frame; frames are outermost first. Also fills file and
// function of the incident.
void PlaceFrames(std::span<const TracebackMachine::Frame* const> frames, Incident& incident);

// FrameKind told by the exception's own words alone; kUnknown when they tell nothing.
FrameKind FrameKindOfMessage(std::string_view type, std::string_view message);

}  // namespace rankscope::logs
