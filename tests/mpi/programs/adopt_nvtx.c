// SPDX-License-Identifier: Apache-2.0
// A program that says where it is by NVTX, with the headers of NVIDIA's package; test_adopt.py knows what it does.
// It prints what NVTX answers, which must be the same whether somebody listens or not.
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "adapters/nvtx.h"

// What adapters/nvtx.h says once more.
#define SAME(ours, theirs) _Static_assert((ours) == (theirs), #ours)
SAME(sizeof(struct nvtx_attributes), sizeof(nvtxEventAttributes_t));
SAME(offsetof(struct nvtx_attributes, message_type), offsetof(nvtxEventAttributes_t, messageType));
SAME(offsetof(struct nvtx_attributes, message), offsetof(nvtxEventAttributes_t, message));
SAME(nvtx_message_ascii, NVTX_MESSAGE_TYPE_ASCII);
SAME(nvtx_message_wide, NVTX_MESSAGE_TYPE_UNICODE);
SAME(nvtx_message_registered, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(nvtx_export_callbacks, NVTX_ETID_CALLBACKS);
SAME(sizeof(struct nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME(offsetof(struct nvtx_callbacks, function_table), offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
SAME(nvtx_module_core, NVTX_CB_MODULE_CORE);
SAME(nvtx_module_core2, NVTX_CB_MODULE_CORE2);
SAME(nvtx_range_start_event, NVTX_CBID_CORE_RangeStartEx);
SAME(nvtx_range_start_ascii, NVTX_CBID_CORE_RangeStartA);
SAME(nvtx_range_start_wide, NVTX_CBID_CORE_RangeStartW);
SAME(nvtx_range_end, NVTX_CBID_CORE_RangeEnd);
SAME(nvtx_range_push_event, NVTX_CBID_CORE_RangePushEx);
SAME(nvtx_range_push_ascii, NVTX_CBID_CORE_RangePushA);
SAME(nvtx_range_push_wide, NVTX_CBID_CORE_RangePushW);
SAME(nvtx_range_pop, NVTX_CBID_CORE_RangePop);
SAME(nvtx_domain_range_start, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME(nvtx_domain_range_end, NVTX_CBID_CORE2_DomainRangeEnd);
SAME(nvtx_domain_range_push, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(nvtx_domain_range_pop, NVTX_CBID_CORE2_DomainRangePop);
SAME(nvtx_domain_register_ascii, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(nvtx_domain_register_wide, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(nvtx_domain_create_ascii, NVTX_CBID_CORE2_DomainCreateA);
SAME(nvtx_domain_create_wide, NVTX_CBID_CORE2_DomainCreateW);

static nvtxEventAttributes_t event(void) {
  nvtxEventAttributes_t made;
  memset(&made, 0, sizeof made);
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return made;
}

static nvtxRangeId_t begun_elsewhere;

static void* other_thread(void* unused) {
  nvtxRangePushA("thread");
  begun_elsewhere = nvtxRangeStartA("copy");
  nvtxRangePop();
  return unused;
}

int main(int argc, char** argv) {
  int levels = nvtxRangePushA("before MPI");  // in which MPI_Init is
  MPI_Init(&argc, &argv);
  levels += nvtxRangePop();
  MPI_Barrier(MPI_COMM_WORLD);  // in no region

  const nvtxDomainHandle_t solver = nvtxDomainCreateA("solver"), io = nvtxDomainCreateW(L"e/a");
  nvtxEventAttributes_t sweep = event(), write = event(), nameless = event();
  sweep.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  sweep.message.registered = nvtxDomainRegisterStringA(solver, "sweep");
  write.messageType = NVTX_MESSAGE_TYPE_ASCII;
  write.message.ascii = "write";

  nvtxRangePushA("main");
  for (int i = 0; i < 3; ++i) {
    levels += nvtxDomainRangePushEx(solver, &sweep);
    MPI_Barrier(MPI_COMM_WORLD);
    nvtxRangePushW(L"Gr\u00f6\u00dfe \U0001d70b");
    MPI_Barrier(MPI_COMM_WORLD);
    nvtxRangePop();
    levels += nvtxDomainRangePop(solver);
  }
  // Domains that end in the order they began: the first end ends both, the second nothing.
  nvtxDomainRangePushEx(solver, &sweep);
  nvtxDomainRangePushEx(io, &write);
  MPI_Barrier(MPI_COMM_WORLD);
  nvtxDomainRangePop(solver);
  MPI_Barrier(MPI_COMM_WORLD);
  nvtxDomainRangePop(io);
  nvtxRangePushEx(&nameless);
  MPI_Barrier(MPI_COMM_WORLD);
  nvtxRangePop();
  nvtxRangePop();  // main
  nvtxRangePop();  // of nothing
  nvtxRangePop();

  // Not nested, from thread to thread; ended twice, and what never began.
  const nvtxRangeId_t ahead = nvtxRangeStartA("ahead"), event_range = nvtxDomainRangeStartEx(io, &write);
  pthread_t thread;
  pthread_create(&thread, NULL, other_thread, NULL);
  pthread_join(thread, NULL);
  nvtxRangeEnd(ahead);
  nvtxRangeEnd(begun_elsewhere);
  nvtxRangeEnd(begun_elsewhere);
  nvtxDomainRangeEnd(io, event_range);
  nvtxRangeEnd(12345);
  for (int i = 0; i < 2000; ++i) nvtxRangeStartA("left open");
  nvtxMarkA("mark");
  nvtxDomainDestroy(solver);

  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("levels %d\n", levels);
  MPI_Finalize();
  return 0;
}
