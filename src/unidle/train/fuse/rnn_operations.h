// Recurrent layers under names of the engine's own, for packages.
#pragma once

namespace unidle::train {

/// Torch's runtime for packages cannot pass an empty list of numbers, which torch's operations take, and one of them
/// keeps what its backward pass needs in gradient mode alone, which that runtime leaves. unidle::... are theirs without
/// the list, and fuse.py puts them into packages. Once; later calls do nothing.
void register_rnn_operations();

}  // namespace unidle::train
