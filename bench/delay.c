/* SPDX-License-Identifier: Apache-2.0
 * A network of hosts whose links have a bandwidth and a delay, for kernels without netem.  Makes a TUN device in the
 * network namespace of each process, and carries packets between them: a packet takes its turn on the way into the host
 * it is for, DELAY_US later, and its length at RATE_KBIT.  What leaves a host is shaped by its kernel (tbf).
 *
 *   delay DELAY_US RATE_KBIT PID...
 *
 * The host of the nth process has an address that ends with n.  Prints "ready" when all devices are there; ends with
 * its standard input. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { most_hosts = 64, most_bytes = 65536, address_end = 19 /* of an IPv4 header: last byte of the destination */ };

struct packet {
  struct packet* next;
  long long due_ns;
  int bytes;
  unsigned char data[];
};

/* The way into a host.  Packets leave in the order in which they came, because all have the same delay. */
static struct way {
  int device;
  long long free_ns; /* when the last packet so far has passed */
  struct packet *first, **end;
} ways[most_hosts];
static int hosts;

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* The device belongs to the namespace in which it was made, whoever holds it later. */
static int device_of(const char* process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/net", process);
  const int space = open(path, O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail(path);
  close(space);
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  struct ifreq wanted = {.ifr_name = "eth0", .ifr_flags = IFF_TUN | IFF_NO_PI};
  if (device < 0 || ioctl(device, TUNSETIFF, &wanted) != 0) fail("/dev/net/tun");
  return device;
}

static void take(struct way* from, long long delay_ns, long rate_kbit) {
  static unsigned char data[most_bytes];
  ssize_t bytes;
  while ((bytes = read(from->device, data, sizeof data)) > 0) {
    const int to = bytes > address_end && data[0] >> 4 == 4 ? data[address_end] - 1 : -1;
    if (to < 0 || to >= hosts) continue; /* IPv6 looks for neighbours */
    struct packet* const packet = malloc(sizeof *packet + (size_t)bytes);
    if (packet == NULL) fail("malloc");
    struct way* const way = &ways[to];
    const long long now = now_ns();
    if (way->free_ns < now) way->free_ns = now;
    way->free_ns += bytes * 8000000LL / rate_kbit;
    packet->next = NULL;
    packet->due_ns = way->free_ns + delay_ns;
    packet->bytes = (int)bytes;
    memcpy(packet->data, data, (size_t)bytes);
    *way->end = packet;
    way->end = &packet->next;
  }
}

/* Delivers what is due.  Returns when the next packet is, or -1. */
static long long deliver(struct way* way) {
  while (way->first != NULL && way->first->due_ns <= now_ns()) {
    struct packet* const packet = way->first;
    way->first = packet->next;
    if (way->first == NULL) way->end = &way->first;
    if (write(way->device, packet->data, (size_t)packet->bytes) < 0) perror("delay: a packet is lost");
    free(packet);
  }
  return way->first == NULL ? -1 : way->first->due_ns;
}

int main(int argc, char** argv) {
  struct pollfd polled[most_hosts + 1];
  hosts = argc - 3;
  const long long delay_ns = argc > 3 ? 1000 * atoll(argv[1]) : -1;
  const long rate_kbit = argc > 3 ? atol(argv[2]) : 0;
  if (delay_ns < 0 || rate_kbit <= 0 || hosts > most_hosts) {
    fprintf(stderr, "usage: delay DELAY_US RATE_KBIT PID...\n");
    return 2;
  }
  for (int i = 0; i < hosts; ++i) {
    ways[i] = (struct way){device_of(argv[3 + i]), 0, NULL, &ways[i].first};
    polled[i] = (struct pollfd){ways[i].device, POLLIN, 0};
  }
  polled[hosts] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
  puts("ready");
  fflush(stdout);
  while (polled[hosts].revents == 0) {
    long long due = -1;
    for (int i = 0; i < hosts; ++i) {
      const long long next = deliver(&ways[i]);
      if (next >= 0 && (due < 0 || next < due)) due = next;
    }
    const long long wait = due < 0 ? 1000000000 : due - now_ns();
    const struct timespec limit = {0, wait < 0 ? 0 : wait > 999999999 ? 999999999 : (long)wait};
    if (ppoll(polled, (nfds_t)hosts + 1, &limit, NULL) < 0) fail("ppoll");
    for (int i = 0; i < hosts; ++i) take(&ways[i], delay_ns, rate_kbit);
  }
  return 0;
}
