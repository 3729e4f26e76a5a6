// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// How long disks take, seen by the kernel: two histograms a device and operation, filled when a request completes.
//
//   queue   allocation -> last issue to the driver     request.start_time_ns, what /proc/diskstats counts from
//   device  last issue -> completion
//
// Taking the kernel's own start spares a program on block_rq_insert and is right for requests that are issued without
// ever having been inserted. Most queues have the kernel note the issue as well (request.io_start_time_ns, for writeback
// throttling, kyber, bfq, polling): then the program at the completion does everything. The one at the issue is loaded
// too, and runs only once a disk was seen whose queue does not; its notes are for that disk's requests alone.
//
// https://github.com/torvalds/linux/blob/v6.12/block/blk-mq.c     blk_mq_start_request, blk_update_request
// https://github.com/torvalds/linux/blob/v6.12/block/blk-flush.c  what completes without having been issued
// https://docs.kernel.org/bpf/libbpf/libbpf_overview.html         CO-RE: where fields are, found out when loading
//
// For Linux 5.10 and newer, so without atomic operations that return a value (5.12).
// sources/blocklatency.py is the other side of the maps.

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

enum bpf_map_type { BPF_MAP_TYPE_ARRAY = 2 };
enum { BPF_F_MMAPABLE = 1 << 10 };

// --- the kernel's structures, as far as they are asked

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	char disk_name[32];
};

struct request_queue {
	struct gendisk *disk; // since 5.15
};

enum mq_rq_state { MQ_RQ_IDLE = 0 };

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 __data_len;
	__u64 start_time_ns;
	__u64 io_start_time_ns; // 0 until the kernel notes it; once for each issue, right after block_rq_issue
	enum mq_rq_state state;
};

struct request___until_5_16 {
	struct gendisk *rq_disk;
};

#pragma clang attribute pop

enum req_op___since_6_0 { REQ_OP_ZONE_APPEND___since_6_0 = 7 };

#define OPERATION_BITS 0xff // of request.cmd_flags
enum request_operation {
	READ = 0,
	WRITE = 1,
	FLUSH = 2,
	DISCARD = 3,
	SECURE_ERASE = 5,
	WRITE_SAME = 7, // until 5.17; zone append on newer kernels: both write
	WRITE_ZEROES = 9,
	ZONE_APPEND_UNTIL_6_0 = 13,
	PASSTHROUGH = 32, // this and above: commands of programs and drivers, not I/O
};

// --- what user space maps: struct and constant alike stand in sources/blocklatency.py

#define BUCKETS 28 // up to 1000 << 0..26 ns, and above
#define OPERATIONS 4
#define DEVICE_BITS 10
#define DEVICES (1 << DEVICE_BITS)
#define PROBES 8

struct times {
	__u64 device_ns;
	__u64 queue_ns;
	__u64 device[BUCKETS];
	__u64 queue[BUCKETS];
};

struct slot {
	struct times of[OPERATIONS]; // read, write, flush, discard
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // lanes * slots, set before loading
	__type(key, __u32);
	__type(value, struct slot);
} histograms SEC(".maps");

// Disks go by name, because the number of an NVMe multipath's path (nvme0c1n1) is told to nobody, and because a name
// that comes back goes on counting at once.
struct device {
	__u64 name[2]; // its first 16 bytes
	__u64 slot_and_one; // written last; 0 ends the search
	__u64 unnoted_since_ns; // the kernel does not note this disk's issues; 0: as far as is known it does
};

struct state {
	__u64 began_ns; // nobody looked at what was issued earlier; 0: nobody does
	__u64 untimed_earlier;
	__u64 untimed_unseen;
	__u64 untimed_endless;
	__u64 untimed_unnoted;
	__u64 reserved[3];
	struct device devices[DEVICES]; // open addressing
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} state SEC(".maps");

// Requests in flight. One line of cache a set, so that a look costs one miss at most. A hash map of the kernel does the
// same with a lock and three calls, for twice the time (measured; see docs).
#define WAYS 4

struct in_flight {
	__u64 request;
	__u64 issued_ns;
};

struct set {
	struct in_flight way[WAYS];
} __attribute__((aligned(64)));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); // page-aligned, hence line-aligned
	__uint(max_entries, 1); // 1 << set_bits
	__type(key, __u32);
	__type(value, struct set);
} in_flight SEC(".maps");

// Constants for the verifier, put in before loading.
const volatile struct {
	__u32 slots;
	__u32 lane_mask;
	__u32 set_shift; // 64 - set_bits
	__u32 own_notes; // never ask for the kernel's
} sizes;

// No request is in flight for so long: the kernel's timeouts end or reissue it earlier.
#define STALE_NS (3600LL * 1000 * 1000 * 1000)

// A request's address as a number. The verifier lets nobody calculate with the address itself, but with its distance.
static __always_inline __u64 name_of(struct request *rq)
{
	__u64 name = (__u64)rq;
	__u64 base = (__u64)&sizes;

	asm volatile("%0 -= %1" : "+r"(name) : "r"(base));
	return name;
}

static __always_inline struct set *set_of(__u64 name)
{
	__u32 key = (name * 0x9e3779b97f4a7c15ULL) >> sizes.set_shift;

	return bpf_map_lookup_elem(&in_flight, &key);
}

// Keeps a check that the compiler knows to be superfluous: the verifier of Linux 6.1 does not, and refuses the program.
static __always_inline __u32 not_known(__u32 number)
{
	asm volatile("" : "+r"(number));
	return number;
}

static __always_inline __u32 operation_of(struct request *rq)
{
	return rq->cmd_flags & OPERATION_BITS;
}

static __always_inline struct gendisk *disk_of(struct request *rq)
{
	struct request___until_5_16 *old = (void *)rq;

	if (bpf_core_field_exists(old->rq_disk))
		return old->rq_disk;
	return rq->q->disk;
}

static __always_inline struct device *device_of(struct state *known, struct gendisk *disk)
{
	__u64 first = *(__u64 *)&disk->disk_name[0], second = *(__u64 *)&disk->disk_name[8];
	__u32 at = ((first ^ second * 31) * 0x9e3779b97f4a7c15ULL) >> (64 - DEVICE_BITS);

	for (int i = 0; i < PROBES; i++) {
		struct device *device = &known->devices[(at + i) & (DEVICES - 1)];

		if (!*(volatile __u64 *)&device->slot_and_one)
			return 0;
		if (device->name[0] == first && device->name[1] == second)
			return device;
	}
	return 0;
}

// Two CPUs may take the same way at the same moment: one request is then not timed, and counted as such.
static __always_inline int issued(struct request *rq)
{
	__u64 name, now;
	__u32 zero = 0;
	struct state *known;
	struct gendisk *disk;
	struct device *device;
	struct set *set;
	struct in_flight *free = 0;

	if (operation_of(rq) >= PASSTHROUGH)
		return 0;
	known = bpf_map_lookup_elem(&state, &zero);
	disk = disk_of(rq);
	if (!known || !disk)
		return 0;
	device = device_of(known, disk);
	if (!device || !*(volatile __u64 *)&device->unnoted_since_ns)
		return 0;
	name = name_of(rq);
	set = set_of(name);
	if (!set)
		return 0;
	now = bpf_ktime_get_ns();
#pragma unroll
	for (int i = 0; i < WAYS; i++) {
		struct in_flight *way = &set->way[i];

		if (way->request == name) { // its last issue counts
			// The end of a request was not seen (the kernel calls nobody for a few of 100,000) when its structure
			// serves another one by now: that has been allocated since. One that was taken back and is issued again
			// has not.
			if (rq->start_time_ns > way->issued_ns)
				__sync_fetch_and_add(&known->untimed_endless, 1);
			way->issued_ns = now;
			return 0;
		}
		if (!way->request || (__s64)(now - way->issued_ns) > STALE_NS)
			free = way;
	}
	if (free) {
		free->issued_ns = now;
		free->request = name;
	}
	return 0;
}

SEC("tp_btf/block_rq_issue")
int issue(__u64 *ctx)
{
	return issued((struct request *)ctx[0]);
}

SEC("tp_btf/block_rq_issue") // until 5.10.136
int issue_with_queue(__u64 *ctx)
{
	return issued((struct request *)ctx[1]);
}

static __always_inline __u64 forget(__u64 name)
{
	struct set *set = set_of(name);

	if (!set)
		return 0;
#pragma unroll
	for (int i = 0; i < WAYS; i++) {
		struct in_flight *way = &set->way[i];

		if (way->request == name) {
			__u64 issued_ns = way->issued_ns;

			way->request = 0;
			return issued_ns;
		}
	}
	return 0;
}

// What diskstats counts as a write although no data goes to the disk stands with the discards.
static __always_inline __u32 index_of(__u32 operation)
{
	__u32 zone_append = ZONE_APPEND_UNTIL_6_0;

	if (bpf_core_enum_value_exists(enum req_op___since_6_0, REQ_OP_ZONE_APPEND___since_6_0))
		zone_append = bpf_core_enum_value(enum req_op___since_6_0, REQ_OP_ZONE_APPEND___since_6_0);
	if (operation <= DISCARD)
		return operation;
	if (operation == SECURE_ERASE || operation == WRITE_ZEROES)
		return DISCARD;
	if (operation == WRITE_SAME || operation == zone_append)
		return WRITE;
	return OPERATIONS;
}

// The first k with ns <= 1000 << k. 1000 is a little less than 2^10: the highest bit leaves two to choose from.
static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 rest = ns >> 9 >> 31 ? 1U << 31 : ns >> 9;
	__u32 bucket = 0;

	if (!rest)
		return 0;
	if (rest >> 16) { rest >>= 16; bucket = 16; }
	if (rest >> 8) { rest >>= 8; bucket += 8; }
	if (rest >> 4) { rest >>= 4; bucket += 4; }
	if (rest >> 2) { rest >>= 2; bucket += 2; }
	bucket += rest >> 1;
	bucket += ns > 1000ULL << bucket;
	return not_known(bucket < BUCKETS - 1 ? bucket : BUCKETS - 1);
}

// A disk's first request of which nobody noted the issue: from now on the program there notes them, if it runs.
static __always_inline void note_untimed(struct state *known, struct device *device, __u64 started_ns)
{
	__u64 since_ns = *(volatile __u64 *)&device->unnoted_since_ns;

	if (!since_ns)
		*(volatile __u64 *)&device->unnoted_since_ns = bpf_ktime_get_ns();
	if (!known->began_ns)
		__sync_fetch_and_add(&known->untimed_unnoted, 1);
	else if (!since_ns || (started_ns && (started_ns < since_ns || started_ns < known->began_ns)))
		__sync_fetch_and_add(&known->untimed_earlier, 1);
	else
		__sync_fetch_and_add(&known->untimed_unseen, 1);
}

SEC("tp_btf/block_rq_complete")
int complete(__u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	__u32 bytes = (__u32)ctx[2];
	__u32 operation = operation_of(rq);
	__u32 zero = 0, index, key, bucket;
	__u64 started_ns, issued_ns = 0, now;
	struct gendisk *disk;
	struct state *known;
	struct device *device;
	struct slot *found;
	struct times *times;

	if (operation >= PASSTHROUGH)
		return 0;
	// A part of the request, the rest is to come; or nothing but the end of a flush sequence, where the request that
	// brings the flush about ends without data (again).
	if (bytes < rq->__data_len || (!bytes && operation != FLUSH))
		return 0;
	known = bpf_map_lookup_elem(&state, &zero);
	disk = disk_of(rq);
	if (!known || !disk)
		return 0;
	device = device_of(known, disk);
	if (!device)
		return 0;
	if (*(volatile __u64 *)&device->unnoted_since_ns)
		issued_ns = forget(name_of(rq));
	index = index_of(operation);
	if (index >= OPERATIONS)
		return 0;
	if (!issued_ns && !sizes.own_notes)
		issued_ns = rq->io_start_time_ns;
	started_ns = rq->start_time_ns;
	if (!issued_ns) {
		if (rq->state != MQ_RQ_IDLE) // else never issued, or taken back and then ended
			note_untimed(known, device, started_ns);
		return 0;
	}
	now = bpf_ktime_get_ns();
	key = (bpf_get_smp_processor_id() & sizes.lane_mask) * sizes.slots + (__u32)device->slot_and_one - 1;
	found = bpf_map_lookup_elem(&histograms, &key);
	if (!found)
		return 0;
	times = &found->of[not_known(index) & (OPERATIONS - 1)];

	// Atomic: below 6.1 an interrupt may run this program within itself, and CPUs above 64 share lanes. Costs next to
	// nothing on a lane that no other CPU touches.
	now = now > issued_ns ? now - issued_ns : 0;
	bucket = bucket_of(now);
	if (bucket >= BUCKETS)
		return 0;
	__sync_fetch_and_add(&times->device[bucket], 1);
	__sync_fetch_and_add(&times->device_ns, now);
	if (!started_ns) // iostats is off for this queue: the kernel did not look at the clock
		return 0;
	now = issued_ns > started_ns ? issued_ns - started_ns : 0;
	bucket = bucket_of(now);
	if (bucket >= BUCKETS)
		return 0;
	__sync_fetch_and_add(&times->queue[bucket], 1);
	__sync_fetch_and_add(&times->queue_ns, now);
	return 0;
}

// tp_btf is for programs under the GPL only.
char LICENSE[] SEC("license") = "GPL";
