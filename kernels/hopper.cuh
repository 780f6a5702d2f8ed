// Thin wrappers of what sm_90a adds for tensor cores: mbarriers, bulk tensor copies (TMA) with multicast to a cluster,
// warpgroup products (wgmma) and register reallocation. The PTX ISA has each instruction under the name in its wrapper.
//
// Operands lie in shared memory as TMA's 128-byte swizzle leaves them: rows of 64 elements of 16 bits, 128 bytes each,
// in groups of eight rows that begin at multiples of 1024 bytes.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/mma.cuh"

namespace fusebench::kernels::cuda::hopper {

constexpr int kAlignBytes = 1024;  ///< of an operand in shared memory

/// What all lanes of a warp know to be the same number, so that ptxas keeps it, and what follows from it, in uniform
/// registers; wgmma's descriptors are read from there.
template <typename Number>
__device__ __forceinline__ Number uniform(Number number) {
  return __shfl_sync(0xffffffffu, number, 0);
}

/// The first address from `shared` on where an operand may begin. `uniform`, since ptxas would derive it anew from the
/// window's base wherever it is used.
__device__ __forceinline__ std::uint32_t aligned(std::uint32_t shared) {
  return uniform(shared + (-shared & (kAlignBytes - 1)));
}

// --- mbarriers; addresses are those of shared_address (kernels/mma.cuh) ---

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Makes initialised barriers visible to the cluster and to TMA; a cluster barrier has to follow.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

/// One arrival, which also announces bytes that copies will bring.
__device__ __forceinline__ void barrier_arrive_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
}

/// One arrival at the barrier that block `rank` of the cluster has at the same address. It orders what wgmma has read
/// before what TMA writes next, which needs no more than this. With an explicit .release.cluster ptxas would put a
/// MEMBAR.GPU before it, hundreds of cycles long, and after a wait with .acquire.cluster empty L1.
__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier, std::uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/// Waits until the barrier's phase of this parity has ended.
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// --- clusters ---

__device__ __forceinline__ std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}

/// %smid: where this block runs.
__device__ __forceinline__ int multiprocessor_id() {
  int id;
  asm volatile("mov.u32 %0, %%smid;\n" : "=r"(id));
  return id;
}

__device__ __forceinline__ void store_number(std::uint32_t shared, int number) {
  asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(shared), "r"(number) : "memory");
}

__device__ __forceinline__ int load_number(std::uint32_t shared) {
  int number;
  asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(number) : "r"(shared) : "memory");
  return number;
}

/// The number that block `rank` of the cluster has at this address of its shared memory.
__device__ __forceinline__ int load_number(std::uint32_t shared, std::uint32_t rank) {
  int number;
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %1, %2;\n"
      "ld.shared::cluster.b32 %0, [remote];\n"
      "}\n"
      : "=r"(number)
      : "r"(shared), "r"(rank)
      : "memory");
  return number;
}

/// Every thread of every block of the cluster.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
}

// --- dependent launch ---

/// Nothing that another kernel writes is read before this: a dependent launch may start while its predecessor runs.
__device__ __forceinline__ void wait_for_predecessor() { asm volatile("griddepcontrol.wait;\n" ::: "memory"); }

/// From here on the kernel behind this one may start, on multiprocessors that this one leaves free.
__device__ __forceinline__ void let_successor_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

constexpr int kSectorBytes = 32;  ///< of memory, the least that is read

/// Brings a sector into L2, and its page's address near, for a read to come: the first read of a page comes from afar.
/// A load that nobody waits for, since prefetch.global.L2 takes a warp's addresses one by one: 10 to 18 us a launch.
__device__ __forceinline__ void touch(const void* global) {
  [[maybe_unused]] std::uint32_t unused;
  asm volatile("ld.global.b32 %0, [%1];\n" : "=r"(unused) : "l"(global));
}

/// The same for `count` neighbours, by the four lanes of a quad together.
template <typename T>
__device__ __forceinline__ void touch_by_quad(const T* first, int count) {
  constexpr int kSector = kSectorBytes / sizeof(T);
  for (int i = static_cast<int>(threadIdx.x) % 4 * kSector; i < count; i += 4 * kSector) touch(first + i);
}

// --- TMA ---

/// A policy for L2: what is copied with it leaves before all else. `volatile`, so that it is made where it is used: it
/// would take two registers from a kernel's beginning to its end.
__device__ __forceinline__ std::uint64_t evict_first() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(reinterpret_cast<std::uint64_t>(&map)) : "memory");
}

/// Copies the map's box at (row, col) to `shared` and reports its bytes to `barrier`; outside the tensor it is zeros,
/// whose bytes count too.
__device__ __forceinline__ void tma_load(std::uint32_t shared, const CUtensorMap& map, int row, int col,
                                         std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];\n" ::"r"(shared),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(col), "r"(row), "r"(barrier)
      : "memory");
}

/// The same for every block of the cluster whose bit is in `ranks`: each gets the box, and the report, at the same
/// addresses.
__device__ __forceinline__ void tma_load(std::uint32_t shared, const CUtensorMap& map, int row, int col,
                                         std::uint32_t barrier, std::uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;\n" ::"r"(shared),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(col), "r"(row), "r"(barrier), "h"(ranks)
      : "memory");
}

/// For this block alone, of a map of four dimensions, innermost first.
__device__ __forceinline__ void tma_load(std::uint32_t shared, const CUtensorMap& map, int x, int y, int z, int w,
                                         std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5}], [%6];\n" ::"r"(shared),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}

/// The same for the blocks of `ranks`.
__device__ __forceinline__ void tma_load(std::uint32_t shared, const CUtensorMap& map, int x, int y, int z, int w,
                                         std::uint32_t barrier, std::uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3, %4, %5}], [%6], %7;\n" ::"r"(shared),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "h"(ranks)
      : "memory");
}

/// The same for a map of five dimensions, from (x, 0, 0, 0, v) on.
__device__ __forceinline__ void tma_load_permuted(std::uint32_t shared, const CUtensorMap& map, int x, int v,
                                                  std::uint32_t barrier, std::uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3, %3, %3, %4}], [%5], %6;\n" ::"r"(shared),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(0), "r"(v), "r"(barrier), "h"(ranks)
      : "memory");
}
__device__ __forceinline__ void tma_load_permuted(std::uint32_t shared, const CUtensorMap& map, int x, int v,
                                                  std::uint32_t barrier, std::uint16_t ranks, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"
      " [%0], [%1, {%2, %3, %3, %3, %4}], [%5], %6, %7;\n" ::"r"(shared),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(0), "r"(v), "r"(barrier), "h"(ranks), "l"(policy)
      : "memory");
}

/// Ordinary writes to shared memory that TMA is to read next, or reads where it is to write: each thread says this
/// before the barrier between them.
__device__ __forceinline__ void fence_for_tma() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }

/// Copies a box from `shared` to (row, col) in the map's tensor; what lies outside is left out. A thread's stores form
/// groups, each ended by tma_commit.
__device__ __forceinline__ void tma_store(const CUtensorMap& map, int row, int col, std::uint32_t shared) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n" ::"l"(
                   reinterpret_cast<std::uint64_t>(&map)),
               "r"(col), "r"(row), "r"(shared)
               : "memory");
}
__device__ __forceinline__ void tma_store(const CUtensorMap& map, int row, int col, std::uint32_t shared,
                                          std::uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;\n" ::"l"(
                   reinterpret_cast<std::uint64_t>(&map)),
               "r"(col), "r"(row), "r"(shared), "l"(policy)
               : "memory");
}
__device__ __forceinline__ void tma_commit() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }
/// Until shared memory has been read by all of the thread's groups.
__device__ __forceinline__ void tma_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory"); }

__device__ __forceinline__ void store_pair(std::uint32_t shared, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(shared), "f"(first), "f"(second) : "memory");
}
__device__ __forceinline__ void load_eight(std::uint32_t shared, float (&values)[8]) {
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(values[i]), "=f"(values[i + 1]), "=f"(values[i + 2]), "=f"(values[i + 3])
                 : "r"(shared + i * 4)
                 : "memory");
  }
}

/// Rounds 4 or 8 floats to neighbours in shared memory, by one store.
template <typename T>
__device__ __forceinline__ void store_shared(std::uint32_t shared, const float (&values)[4]) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};\n" ::"r"(shared), "r"(pack<T>(values[0], values[1])),
               "r"(pack<T>(values[2], values[3]))
               : "memory");
}
template <typename T>
__device__ __forceinline__ void store_shared(std::uint32_t shared, const float (&values)[8]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(shared), "r"(pack<T>(values[0], values[1])),
               "r"(pack<T>(values[2], values[3])), "r"(pack<T>(values[4], values[5])),
               "r"(pack<T>(values[6], values[7]))
               : "memory");
}

// --- named barriers of whole warps; 0 is __syncthreads' ---

__device__ __forceinline__ void named_sync(int name, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(name), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(int name, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(name), "r"(threads) : "memory");
}

// --- registers ---

/// Each warpgroup gives up registers, or takes what the others gave up.
template <int Count>
__device__ __forceinline__ void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(Count));
}
template <int Count>
__device__ __forceinline__ void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(Count));
}

/// Of a thread, where one warpgroup loads and two compute. A block has what it was launched with, 168 a thread, and
/// grow_registers would wait for more for ever.
constexpr int kLoadingRegisters = 40, kComputingRegisters = 232;
static_assert(kLoadingRegisters + 2 * kComputingRegisters <= 3 * 168);

// --- wgmma ---

/// Describes an operand whose rows (of m or n) lie as said above, from the element (row 0, k 0) at `shared` on. The
/// next 16 of k begin kDescriptorStepK further.
__device__ __forceinline__ std::uint64_t descriptor(std::uint32_t shared) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t kGroupPitch = std::uint64_t{1024 >> 4} << 32;  // from eight rows to the next eight
  return kSwizzle128 | kGroupPitch | std::uint64_t{1} << 16 | (shared & 0x3ffff) >> 4;
}
constexpr std::uint64_t kDescriptorStepK = 16 * 2 >> 4;

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(Pending) : "memory");
}

/// Accumulators may be read from here on: keeps the compiler from reading them before the wait above it.
template <int Count>
__device__ __forceinline__ void pin(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// An operand b[16, N] whose rows are those of k, 64 columns of N at a time: as `descriptor`, and the next 64 columns
/// begin `next_columns` bytes further. The next 16 of k begin kTransposedStepK further.
__device__ __forceinline__ std::uint64_t transposed_descriptor(std::uint32_t shared, int next_columns) {
  return (descriptor(shared) & ~(std::uint64_t{0x3fff} << 16)) | static_cast<std::uint64_t>(next_columns >> 4) << 16;
}
constexpr std::uint64_t kTransposedStepK = 16 * 128 >> 4;

/// d (+)= a[64, 16] · b[N, 16]ᵀ by a warpgroup. A warp has 16 rows, from 16 (warp % 4) on; d[4j..4j+3] are a C fragment
/// (kernels/mma.cuh) of the columns from 8j on.
template <typename T, int N>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate);

/// The same with a from registers, an A fragment (kernels/mma.cuh) in each warp, and b from a transposed_descriptor.
template <typename T, int N>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], const std::uint32_t* a, std::uint64_t b, bool accumulate);

#define FUSEBENCH_FLOATS_8(d, i)                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define FUSEBENCH_FLOATS_32(d, i) \
  FUSEBENCH_FLOATS_8(d, i), FUSEBENCH_FLOATS_8(d, i + 8), FUSEBENCH_FLOATS_8(d, i + 16), FUSEBENCH_FLOATS_8(d, i + 24)
#define FUSEBENCH_FLOATS_64(d) FUSEBENCH_FLOATS_32(d, 0), FUSEBENCH_FLOATS_32(d, 32)
#define FUSEBENCH_FLOATS_80(d) FUSEBENCH_FLOATS_64(d), FUSEBENCH_FLOATS_8(d, 64), FUSEBENCH_FLOATS_8(d, 72)
#define FUSEBENCH_FLOATS_96(d) FUSEBENCH_FLOATS_32(d, 0), FUSEBENCH_FLOATS_32(d, 32), FUSEBENCH_FLOATS_32(d, 64)
#define FUSEBENCH_FLOATS_128(d) FUSEBENCH_FLOATS_64(d), FUSEBENCH_FLOATS_32(d, 64), FUSEBENCH_FLOATS_32(d, 96)
#define FUSEBENCH_NAMES_32                                                  \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define FUSEBENCH_NAMES_64                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define FUSEBENCH_NAMES_80                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79}"
#define FUSEBENCH_NAMES_96                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}"
#define FUSEBENCH_NAMES_128                                                                      \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"
// a, b and accumulate are the operands behind the floats.
#define FUSEBENCH_WGMMA(T, type, n, names, a_name, b_name, accumulate_name, floats)                                  \
  template <>                                                                                                        \
  __device__ __forceinline__ void wgmma<T, n>(float(&d)[n / 2], std::uint64_t a, std::uint64_t b, bool accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " accumulate_name                                                 \
                 ", 0;\n"                                                                                            \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " " names ", " a_name ", " b_name   \
                 ", p, 1, 1, 0, 0;\n}\n"                                                                             \
                 : floats                                                                                            \
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                                               \
  }

#define FUSEBENCH_WGMMA_FROM_REGISTERS(T, type, n, names, a_names, b_name, accumulate_name, floats)                 \
  template <>                                                                                                       \
  __device__ __forceinline__ void wgmma<T, n>(float(&d)[n / 2], const std::uint32_t* a, std::uint64_t b,            \
                                              bool accumulate) {                                                    \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " accumulate_name                                                \
                 ", 0;\n"                                                                                           \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " " names ", " a_names ", " b_name \
                 ", p, 1, 1, 1;\n}\n"                                                                               \
                 : floats                                                                                           \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));          \
  }

FUSEBENCH_WGMMA(__half, "f16", 64, FUSEBENCH_NAMES_32, "%32", "%33", "%34", FUSEBENCH_FLOATS_32(d, 0))
FUSEBENCH_WGMMA(__nv_bfloat16, "bf16", 64, FUSEBENCH_NAMES_32, "%32", "%33", "%34", FUSEBENCH_FLOATS_32(d, 0))
FUSEBENCH_WGMMA(__half, "f16", 128, FUSEBENCH_NAMES_64, "%64", "%65", "%66", FUSEBENCH_FLOATS_64(d))
FUSEBENCH_WGMMA(__nv_bfloat16, "bf16", 128, FUSEBENCH_NAMES_64, "%64", "%65", "%66", FUSEBENCH_FLOATS_64(d))
FUSEBENCH_WGMMA(__half, "f16", 160, FUSEBENCH_NAMES_80, "%80", "%81", "%82", FUSEBENCH_FLOATS_80(d))
FUSEBENCH_WGMMA(__nv_bfloat16, "bf16", 160, FUSEBENCH_NAMES_80, "%80", "%81", "%82", FUSEBENCH_FLOATS_80(d))
FUSEBENCH_WGMMA(__half, "f16", 192, FUSEBENCH_NAMES_96, "%96", "%97", "%98", FUSEBENCH_FLOATS_96(d))
FUSEBENCH_WGMMA(__nv_bfloat16, "bf16", 192, FUSEBENCH_NAMES_96, "%96", "%97", "%98", FUSEBENCH_FLOATS_96(d))
FUSEBENCH_WGMMA(__half, "f16", 256, FUSEBENCH_NAMES_128, "%128", "%129", "%130", FUSEBENCH_FLOATS_128(d))
FUSEBENCH_WGMMA(__nv_bfloat16, "bf16", 256, FUSEBENCH_NAMES_128, "%128", "%129", "%130", FUSEBENCH_FLOATS_128(d))

FUSEBENCH_WGMMA_FROM_REGISTERS(__half, "f16", 64, FUSEBENCH_NAMES_32, "{%32, %33, %34, %35}", "%36", "%37",
                               FUSEBENCH_FLOATS_32(d, 0))
FUSEBENCH_WGMMA_FROM_REGISTERS(__nv_bfloat16, "bf16", 64, FUSEBENCH_NAMES_32, "{%32, %33, %34, %35}", "%36", "%37",
                               FUSEBENCH_FLOATS_32(d, 0))
FUSEBENCH_WGMMA_FROM_REGISTERS(__half, "f16", 128, FUSEBENCH_NAMES_64, "{%64, %65, %66, %67}", "%68", "%69",
                               FUSEBENCH_FLOATS_64(d))
FUSEBENCH_WGMMA_FROM_REGISTERS(__nv_bfloat16, "bf16", 128, FUSEBENCH_NAMES_64, "{%64, %65, %66, %67}", "%68", "%69",
                               FUSEBENCH_FLOATS_64(d))

#undef FUSEBENCH_WGMMA_FROM_REGISTERS
#undef FUSEBENCH_WGMMA
#undef FUSEBENCH_NAMES_128
#undef FUSEBENCH_NAMES_96
#undef FUSEBENCH_NAMES_80
#undef FUSEBENCH_NAMES_64
#undef FUSEBENCH_NAMES_32
#undef FUSEBENCH_FLOATS_128
#undef FUSEBENCH_FLOATS_96
#undef FUSEBENCH_FLOATS_80
#undef FUSEBENCH_FLOATS_64
#undef FUSEBENCH_FLOATS_32
#undef FUSEBENCH_FLOATS_8

}  // namespace fusebench::kernels::cuda::hopper
