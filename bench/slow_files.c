/* SPDX-License-Identifier: Apache-2.0
 * A file system with one slow server: shows the files of a folder, and takes a set time for each operation on a name
 * and for each byte written.  It serves one request after the other, as the file server of the scale laboratory
 * (bench/scale/fibers.h), so that many writers wait for each other.
 *
 *   slow_files FOLDER MICROSECONDS_OF_A_NAME NANOSECONDS_OF_A_BYTE MOUNTPOINT -f -s
 *
 * For measurements only: it knows what a profile needs. */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static int folder = -1;
static double ns_of_name, ns_of_byte;

static void serve(double ns) {
  const long long whole = (long long)ns;
  const struct timespec pause = {whole / 1000000000, whole % 1000000000};
  if (whole > 0) nanosleep(&pause, NULL);
}

/* The path below the folder: "." of the folder itself. */
static const char* below(const char* path) { return path[1] ? path + 1 : "."; }
static int result(int failed) { return failed ? -errno : 0; }
/* The result of an operation that the server takes its time for. */
static int served(int failed) {
  const int answer = result(failed);
  serve(ns_of_name);
  return answer;
}

static int s_getattr(const char* path, struct stat* st, struct fuse_file_info* file) {
  return result(file ? fstat((int)file->fh, st) : fstatat(folder, below(path), st, AT_SYMLINK_NOFOLLOW));
}
static int s_readdir(const char* path, void* buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info* file,
                     enum fuse_readdir_flags flags) {
  (void)path, (void)buffer, (void)fill, (void)offset, (void)file, (void)flags;
  return -ENOSYS; /* the folder itself shows its files */
}
static int s_open(const char* path, struct fuse_file_info* file) {
  const int fd = openat(folder, below(path), file->flags & ~O_NOFOLLOW);
  file->fh = (uint64_t)fd;
  return fd < 0 ? -errno : 0;
}
static int s_create(const char* path, mode_t mode, struct fuse_file_info* file) {
  const int fd = openat(folder, below(path), file->flags | O_CREAT, mode);
  file->fh = (uint64_t)fd;
  return served(fd < 0);
}
static int s_mkdir(const char* path, mode_t mode) { return served(mkdirat(folder, below(path), mode) != 0); }
static int s_rmdir(const char* path) { return served(unlinkat(folder, below(path), AT_REMOVEDIR) != 0); }
static int s_unlink(const char* path) { return served(unlinkat(folder, below(path), 0) != 0); }
static int s_link(const char* from, const char* to) {
  return served(linkat(folder, below(from), folder, below(to), 0) != 0);
}
static int s_rename(const char* from, const char* to, unsigned flags) {
  return served(renameat2(folder, below(from), folder, below(to), flags) != 0);
}
static int s_read(const char* path, char* data, size_t size, off_t offset, struct fuse_file_info* file) {
  (void)path;
  const ssize_t got = pread((int)file->fh, data, size, offset);
  return got < 0 ? -errno : (int)got;
}
static int s_write(const char* path, const char* data, size_t size, off_t offset, struct fuse_file_info* file) {
  (void)path;
  const ssize_t put = pwrite((int)file->fh, data, size, offset);
  serve(ns_of_byte * (double)size);
  return put < 0 ? -errno : (int)put;
}
static int s_fsync(const char* path, int data_only, struct fuse_file_info* file) {
  (void)path, (void)data_only, (void)file;
  return 0; /* what a server has received is safe; the disk below it is not measured */
}
static int s_truncate(const char* path, off_t size, struct fuse_file_info* file) {
  if (file) return result(ftruncate((int)file->fh, size) != 0);
  const int fd = openat(folder, below(path), O_WRONLY);
  if (fd < 0) return -errno;
  const int answer = result(ftruncate(fd, size) != 0);
  close(fd);
  return answer;
}
static int s_chmod(const char* path, mode_t mode, struct fuse_file_info* file) {
  return result(file ? fchmod((int)file->fh, mode) : fchmodat(folder, below(path), mode, 0));
}
static int s_chown(const char* path, uid_t user, gid_t group, struct fuse_file_info* file) {
  return result(file ? fchown((int)file->fh, user, group)
                     : fchownat(folder, below(path), user, group, AT_SYMLINK_NOFOLLOW));
}
static int s_utimens(const char* path, const struct timespec times[2], struct fuse_file_info* file) {
  return result(file ? futimens((int)file->fh, times) : utimensat(folder, below(path), times, 0));
}
static int s_release(const char* path, struct fuse_file_info* file) {
  (void)path;
  return result(close((int)file->fh));
}
static int s_statfs(const char* path, struct statvfs* st) {
  (void)path;
  return result(fstatvfs(folder, st));
}
static void* s_init(struct fuse_conn_info* connection, struct fuse_config* config) {
  (void)connection;
  config->use_ino = 1;
  config->nullpath_ok = 0;
  prctl(PR_SET_TIMERSLACK, 1000UL);
  return NULL;
}

static const struct fuse_operations operations = {
    .getattr = s_getattr,
    .mkdir = s_mkdir,
    .unlink = s_unlink,
    .rmdir = s_rmdir,
    .rename = s_rename,
    .link = s_link,
    .chmod = s_chmod,
    .chown = s_chown,
    .truncate = s_truncate,
    .open = s_open,
    .read = s_read,
    .write = s_write,
    .statfs = s_statfs,
    .release = s_release,
    .fsync = s_fsync,
    .readdir = s_readdir,
    .init = s_init,
    .create = s_create,
    .utimens = s_utimens,
};

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ns_of_name = atof(argv[2]) * 1e3;
  ns_of_byte = atof(argv[3]);
  if (folder < 0) {
    perror(argv[1]);
    return 2;
  }
  argv[3] = argv[0];
  return fuse_main(argc - 3, argv + 3, &operations, NULL);
}
