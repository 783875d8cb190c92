/* SPDX-License-Identifier: Apache-2.0
 * Files of every.c: settings, reads and writes, error handlers. */
#pragma once

#include "every.h"

static void settings_of_a_file(MPI_File file) {
  MPI_Offset offset;
  MPI_Group group;
  MPI_Info info;
  MPI_Datatype kind, part;
  Far extent;
  MPI_File_set_size(file, 4096);
  MPI_File_preallocate(file, 4096);
  MPI_File_get_size(file, &offset);
  MPI_File_get_group(file, &group);
  MPI_Group_free(&group);
  MPI_File_get_amode(file, &n);
  MPI_File_get_info(file, &info);
  MPI_File_set_info(file, info);
  MPI_Info_free(&info);
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_get_view(file, &offset, &kind, &part, text);
  MPI_File_get_type_extent(file, MPI_INT, &extent);
  MPI_File_get_atomicity(file, &flag);
  MPI_File_set_atomicity(file, 0);
}

static void transfers_at_offsets(MPI_File file) {
  MPI_File_write_at(file, 8 * rank, data, 4, MPI_INT, s);
  MPI_File_read_at(file, 8 * rank, into, 4, MPI_INT, s);
  MPI_File_write_at_all(file, 8 * rank, data, 4, MPI_INT, s);
  MPI_File_read_at_all(file, 8 * rank, into, 4, MPI_INT, s);
  MPI_File_iwrite_at(file, 8 * rank, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread_at(file, 8 * rank, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iwrite_at_all(file, 8 * rank, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread_at_all(file, 8 * rank, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
}

static void transfers_at_own_pointers(MPI_File file) {
  MPI_Offset offset;
  MPI_File_seek(file, 8 * rank, MPI_SEEK_SET);
  MPI_File_write(file, data, 4, MPI_INT, s);
  MPI_File_get_position(file, &offset);
  MPI_File_get_byte_offset(file, offset, &offset);
  MPI_File_seek(file, 8 * rank, MPI_SEEK_SET);
  MPI_File_read(file, into, 4, MPI_INT, s);
  MPI_File_write_all(file, data, 4, MPI_INT, s);
  MPI_File_read_all(file, into, 4, MPI_INT, s);
  MPI_File_iwrite(file, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread(file, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iwrite_all(file, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread_all(file, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_write_all_begin(file, data, 4, MPI_INT);
  MPI_File_write_all_end(file, data, s);
  MPI_File_read_all_begin(file, into, 4, MPI_INT);
  MPI_File_read_all_end(file, into, s);
}

static void split_transfers_at_offsets(MPI_File file) {
  MPI_File_write_at_all_begin(file, 8 * rank, data, 4, MPI_INT);
  MPI_File_write_at_all_end(file, data, s);
  MPI_File_read_at_all_begin(file, 8 * rank, into, 4, MPI_INT);
  MPI_File_read_at_all_end(file, into, s);
}

static void transfers_at_shared_pointer(MPI_File file) {
  MPI_Offset offset;
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  MPI_File_write_shared(file, data, 4, MPI_INT, s);
  MPI_File_read_shared(file, into, 4, MPI_INT, s);
  MPI_File_iwrite_shared(file, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread_shared(file, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_write_ordered(file, data, 4, MPI_INT, s);
  MPI_File_read_ordered(file, into, 4, MPI_INT, s);
  MPI_File_write_ordered_begin(file, data, 4, MPI_INT);
  MPI_File_write_ordered_end(file, data, s);
  MPI_File_read_ordered_begin(file, into, 4, MPI_INT);
  MPI_File_read_ordered_end(file, into, s);
  MPI_File_get_position_shared(file, &offset);
}

static void files(void) {
  MPI_File file;
  MPI_File_open(WORLD, "every.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  settings_of_a_file(file);
  transfers_at_offsets(file);
  transfers_at_own_pointers(file);
  split_transfers_at_offsets(file);
  transfers_at_shared_pointer(file);
  MPI_File_sync(file);
  MPI_File_close(&file);
  MPI_File_delete("every.dat", MPI_INFO_NULL); /* on one of both ranks it is gone already: an error is a call as well */
}

static void handled_file(MPI_File* file, int* code, ...) { (void)file, (void)code; }

static void handlers_of_files(void) {
  MPI_File file;
  MPI_Errhandler handler;
  snprintf(text, sizeof text, "every.%d", rank);
  MPI_File_open(SELF, text, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_create_errhandler(handled_file, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_File_call_errhandler(file, MPI_ERR_OTHER);
  MPI_Errhandler_free(&handler);
  MPI_File_get_errhandler(file, &handler);
  MPI_Errhandler_free(&handler);
  MPI_File_close(&file);
}
