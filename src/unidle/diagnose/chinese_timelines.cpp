// What rules say in Chinese about a device's timeline. Rows are as in chinese.cpp.
// clang-format off
#include "unidle/diagnose/detail/chinese_rules.h"

namespace unidle::diagnose::detail {

Messages chinese_timeline_messages() {
  return {
      {"what device and host did kernel by kernel (a profiler's trace)", "设备与主机逐个内核做了什么（性能分析轨迹）"},
      {"in the profiled steps the device idles {} of the time, {} for this reason", "在所分析的步中，设备有 {} 的时间空闲，其中因此的占总时间的 {}"},
      {"during the longest gap, {}, the host was in {}", "在最长的一段空闲（{}）中，主机处于 {}"},
      {"the trace records every Python function, which slows the host down: a trace with with_stack=False shows by how much", "每个 Python 函数都被记录，这使主机变慢：不带调用栈（with_stack=False）的轨迹能说明慢了多少"},
      {"Exchange between devices does not overlap with computing", "设备间的数据交换没有被计算掩盖"},
      {"exchange between devices", "设备间的数据交换"},
      {"in the profiled steps the device exchanges data with others for {} of the time; for {} it does nothing else", "在所分析的步中，设备有 {} 的时间在与其他设备交换数据；其中占总时间 {} 的部分没有同时计算"},
      {"a late rank makes the others wait in the exchange: the traces of all ranks, given together, show which one", "迟到的 rank 会让其他 rank 在交换中等待：把所有 rank 的轨迹一起给出即可看出是哪一个"},
      {"exchange less, or during the backward pass: no_sync() while gradients accumulate, 16-bit gradients, larger DistributedDataParallel buckets, FSDP prefetching", "减少交换，或让它与反向传播同时进行：梯度累积时用 no_sync()、16 位梯度、更大的 DistributedDataParallel 桶、FSDP 预取"},
      {"The host does something else while the device idles", "设备空闲时主机在做别的事"},
      {"the host's other work", "主机的其他工作"},
      {"the host launches nothing for more than a millisecond at a time", "主机一次有超过一毫秒不启动任何内核"},
      {"The device idles while the host compiles or loads kernels", "主机编译或加载内核时设备空闲"},
      {"compiling and loading", "编译与加载"},
      {"first calls and new shapes compile and load: a trace that begins after some steps shows whether it goes on", "首次调用和新形状会触发编译与加载：从若干步之后开始的轨迹能说明它是否持续"},
      {"The device idles while the host allocates memory", "主机申请显存时设备空闲"},
      {"calls for device memory", "显存申请调用"},
      {"calls such as cudaMalloc and cudaFree: they come from the first steps, empty_cache() and growing sizes", "诸如 cudaMalloc 与 cudaFree 的调用：来自最初的步、empty_cache() 以及不断增大的尺寸"},
      {"The device idles although work is queued", "队列中有工作而设备空闲"},
      {"work that is queued", "已排队的工作"},
      {"the work that ended these gaps was launched before they began: the device waited for another stream, another rank or work that the trace does not show", "结束这些空闲的工作在空闲开始之前就已启动：设备在等待另一个流、另一个 rank 或轨迹中没有显示的工作"},
      {"The device idles while the loop waits for a batch", "训练循环等待批次时设备空闲"},
      {"the wait for batches", "等待批次"},
      {"meanwhile the loop waits for its next batch; unidle run shows what the loader's processes spend their time on", "此时训练循环在等下一个批次；加载器把时间花在哪里只有它自己的进程知道：unidle run 能说明"},
      {"more workers, or less work for each sample", "增加 worker，或减少每个样本的工作量"},
      {"a kernel takes {} on average, and the host launches one every {}", "一个内核平均运行 {}，而主机每 {} 启动一个"},
      {"the host waited for the device with nothing queued behind: the device idles until the host launches again", "主机等待设备，设备做完时队列已空：它一直空闲到主机重新启动内核"},
      {"the training thread makes the samples itself", "训练线程自己准备样本"},
      {"in the profiled steps copies that no kernel overlaps take {} of the time, and for {} the device idles while the host is in copy calls", "在所分析的步中，有 {} 的时间只有复制而没有内核，另有 {} 的时间设备空闲而主机处于复制调用中"},
      {"{} of the bytes copied to the device come from pageable memory", "复制到设备的字节有 {} 来自可分页内存"},
  };
}

}  // namespace unidle::diagnose::detail
