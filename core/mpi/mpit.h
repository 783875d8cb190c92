// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include "core/mpi/bind.h"

// The tool information interface (MPI_T).  Each function gets the library's function, `next`, and leaves the library's
// own variables to it.  The performance variables of commlens follow those that the library had at the first query.  An
// invalid handle or session gives the error code of the standard; it is never dereferenced.
namespace [[gnu::visibility("hidden")]] commlens {
namespace tool {

int init_thread(decltype(&PMPI_T_init_thread) next, int required, int* provided) noexcept;
int finalize(decltype(&PMPI_T_finalize) next) noexcept;

int pvar_get_num(decltype(&PMPI_T_pvar_get_num) next, int* num_pvar) noexcept;
int pvar_get_info(decltype(&PMPI_T_pvar_get_info) next, int pvar_index, char* name, int* name_len, int* verbosity,
                  int* var_class, MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind,
                  int* readonly, int* continuous, int* atomic) noexcept;
int pvar_get_index(decltype(&PMPI_T_pvar_get_index) next, const char* name, int var_class, int* pvar_index) noexcept;

int pvar_session_create(decltype(&PMPI_T_pvar_session_create) next, MPI_T_pvar_session* session) noexcept;
int pvar_session_free(decltype(&PMPI_T_pvar_session_free) next, MPI_T_pvar_session* session) noexcept;
int pvar_handle_alloc(decltype(&PMPI_T_pvar_handle_alloc) next, MPI_T_pvar_session session, int pvar_index,
                      void* obj_handle, MPI_T_pvar_handle* handle, int* count) noexcept;
int pvar_handle_free(decltype(&PMPI_T_pvar_handle_free) next, MPI_T_pvar_session session,
                     MPI_T_pvar_handle* handle) noexcept;

int pvar_start(decltype(&PMPI_T_pvar_start) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept;
int pvar_stop(decltype(&PMPI_T_pvar_stop) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept;
int pvar_reset(decltype(&PMPI_T_pvar_reset) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept;
int pvar_read(decltype(&PMPI_T_pvar_read) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle,
              void* buf) noexcept;
int pvar_readreset(decltype(&PMPI_T_pvar_readreset) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                   void* buf) noexcept;
int pvar_write(decltype(&PMPI_T_pvar_write) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle,
               const void* buf) noexcept;

int category_get_num(decltype(&PMPI_T_category_get_num) next, int* num_cat) noexcept;
int category_get_info(decltype(&PMPI_T_category_get_info) next, int cat_index, char* name, int* name_len, char* desc,
                      int* desc_len, int* num_cvars, int* num_pvars, int* num_categories) noexcept;
int category_get_index(decltype(&PMPI_T_category_get_index) next, const char* name, int* cat_index) noexcept;
int category_get_pvars(decltype(&PMPI_T_category_get_pvars) next, int cat_index, int len, int indices[]) noexcept;
int category_get_cvars(decltype(&PMPI_T_category_get_cvars) next, int cat_index, int len, int indices[]) noexcept;
int category_get_categories(decltype(&PMPI_T_category_get_categories) next, int cat_index, int len,
                            int indices[]) noexcept;
int category_get_num_events(decltype(&PMPI_T_category_get_num_events) next, int cat_index, int* num_events) noexcept;
int category_get_events(decltype(&PMPI_T_category_get_events) next, int cat_index, int len, int indices[]) noexcept;

}  // namespace tool
}  // namespace commlens
