// Descriptors 0, 1 and 2 where whoever started us closed them.
#pragma once

namespace unidle {

/// Puts /dev/null where one of them is closed, so that no file of ours is opened there and gets what is printed.
/// Programs that we start find it closed as we did. Call first of all.
void hold_standard_streams();

/// True when that stream was open when we were started.
bool is_given_stream(int stream);

}  // namespace unidle
