// Reads files that torch.save() and pickle_save() write.
#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace unidle::train {

/// The dictionary in a file of torch.save(), in the format since torch 1.6, with its tensors on the host. Every tensor
/// lies within the file's bytes. Throws std::exception, of various torch types, when the file is damaged or of another
/// format.
c10::impl::GenericDict read_archive(const std::string& file);

}  // namespace unidle::train
