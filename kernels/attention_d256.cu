#include "kernels/attention_launch.cuh"

namespace fusebench::kernels::cuda {

template void launch_attention<256>(const AttentionCall& call);

}  // namespace fusebench::kernels::cuda
