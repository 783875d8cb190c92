/* SPDX-License-Identifier: Apache-2.0
 * Datatypes, packing and operations of every.c. */
#pragma once

#include "every.h"

#ifdef LARGE
static void adds(void* in, void* inout, MPI_Count* count, MPI_Datatype* type)
#else
static void adds(void* in, void* inout, int* count, MPI_Datatype* type)
#endif
{
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static int extent_of(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  (void)type, (void)extra;
  return *extent = 4, MPI_SUCCESS;
}

static void attributes_of_a_datatype(MPI_Datatype type) {
  void* value;
  int key;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
  MPI_Type_set_attr(type, key, NULL);
  MPI_Type_get_attr(type, key, &value, &flag);
  MPI_Type_delete_attr(type, key);
  MPI_Type_free_keyval(&key);
}

static void properties_of_a_datatype(void) {
  MPI_Datatype type, made;
  Far low, extent;
  Count size;
  MPI_Count large, larger;
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Type_set_name(type, "three");
  MPI_Type_get_name(type, text, &n);
  MPI_Type_size(type, &size);
  MPI_Type_size_x(type, &large);
  MPI_Type_get_extent(type, &low, &extent);
  MPI_Type_get_extent_x(type, &large, &larger);
  MPI_Type_get_true_extent(type, &low, &extent);
  MPI_Type_get_true_extent_x(type, &large, &larger);
#ifdef LARGE
  MPI_Count counts[4], contents[4];
  MPI_Aint addresses[1];
  MPI_Type_get_envelope(type, &counts[0], &counts[1], &counts[2], &counts[3], &n);
  MPI_Type_get_contents(type, counts[0], counts[1], counts[2], counts[3], which, addresses, contents, &made);
#else
  int counts[3];
  MPI_Aint addresses[1];
  MPI_Type_get_envelope(type, &counts[0], &counts[1], &counts[2], &n);
  MPI_Type_get_contents(type, counts[0], counts[1], counts[2], which, addresses, &made);
#endif
  MPI_Type_dup(type, &made);
  MPI_Type_free(&made);
  attributes_of_a_datatype(type);
  MPI_Type_free(&type);
}

static void constructors(void) {
  MPI_Datatype type, parts[2] = {MPI_INT, MPI_CHAR};
  Count const lengths[2] = {1, 2}, elements[2] = {0, 4}, sizes[2] = {4, 4}, subsizes[2] = {2, 2}, starts[2] = {1, 1};
  Far const offsets[2] = {0, 16};
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_hvector(2, 1, 16, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_indexed(2, lengths, elements, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_hindexed(2, lengths, offsets, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_indexed_block(2, 1, elements, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_hindexed_block(2, 1, offsets, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_struct(2, lengths, offsets, parts, &type);
  MPI_Type_free(&type);
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_darray(1, 0, 1, sizes, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){1},
                         MPI_ORDER_C, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_resized(MPI_INT, 0, 16, &type);
  MPI_Type_free(&type);
  MPI_Type_create_f90_integer(5, &type);
  MPI_Type_create_f90_real(6, 30, &type);
  MPI_Type_create_f90_complex(6, 30, &type);
  MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type);
}

static void packing(void) {
  Count size, position = 0;
  MPI_Aint address;
  MPI_Get_address(room, &address);
  MPI_Pack_size(2, MPI_INT, WORLD, &size);
  MPI_Pack(data, 2, MPI_INT, room, sizeof room, &position, WORLD);
  position = 0;
  MPI_Unpack(room, sizeof room, &position, into, 2, MPI_INT, WORLD);
#ifdef LARGE
  Count* const at = &position;
#else
  MPI_Aint at[1];
#endif
  *at = 0;
  MPI_Pack_external_size("external32", 2, MPI_INT, at);
  *at = 0;
  MPI_Pack_external("external32", data, 2, MPI_INT, room, sizeof room, at);
  *at = 0;
  MPI_Unpack_external("external32", room, sizeof room, at, into, 2, MPI_INT);
}

static void operations(void) {
  MPI_Op op;
  MPI_Op_create(adds, 1, &op);
  MPI_Op_commutative(op, &flag);
  MPI_Reduce_local(data, into, 2, MPI_INT, op);
  MPI_Op_free(&op);
}

static void datatypes(void) {
  properties_of_a_datatype();
  constructors();
  packing();
  operations();
#ifdef LARGE
  MPI_Register_datarep("every", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, extent_of, NULL);
#else
  MPI_Register_datarep("every", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, NULL);
#endif
}
