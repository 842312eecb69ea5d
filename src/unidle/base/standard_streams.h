// Handles descriptors 0, 1 and 2 when the parent process closed them.
#pragma once

namespace unidle {

/// Opens /dev/null for each closed standard stream, so that no other file gets its descriptor and receives output.
/// Child processes find the stream closed. Call it first.
void open_missing_standard_streams();

/// Whether the stream was open when the process started.
bool is_given_stream(int stream);

}  // namespace unidle
