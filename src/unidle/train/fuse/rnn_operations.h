// Recurrent layers as operators of our own, for packages.
#pragma once

namespace unidle::train {

/// Registers unidle::... variants of torch's operators. Torch's runtime for packages cannot pass an empty list of
/// numbers, which torch's operators take, and it leaves gradient mode, without which one of them drops what its
/// backward pass needs. The variants have no list; fuse.py puts them into packages. Later calls do nothing.
void register_rnn_operations();

}  // namespace unidle::train
