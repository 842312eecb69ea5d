// Files that torch.save() and pickle_save() write.
#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace unidle::train {

/// The dictionary in a file of torch.save(), as it is since torch 1.6, with its tensors on the host. No tensor in it
/// reaches beyond the file's bytes. Throws std::exception, of torch's several kinds, for what is damaged or no such
/// file.
c10::impl::GenericDict read_archive(const std::string& file);

}  // namespace unidle::train
