// What sets a host apart from the other OSD hosts of its cluster: a cause for the verdict `host`.
{
  _config+:: {
    host: {
      // Window of rates: that of the figures whose verdict they explain.
      window: $._config.osd.window,

      // With fewer hosts the median is one of the two, and nobody knows which is right.
      minimumHosts: 3,

      // Twice the median. What all hosts have in common explains no host.
      ratio: 2,

      // And at least this.
      floor: {
        // 0: all CPUs have performance; 1: another governor; 2: powersave. Half of the CPUs.
        cpu_governor: 0.5,
        // Seconds to leave the deepest idle state that the CPUs enter: an operation on flash takes as long.
        cpu_idle: 50e-6,
        // Share of the time with a task that waits. Memory that is short costs much more than the wait itself.
        cpu_pressure: 0.2,
        io_pressure: 0.2,
        memory_pressure: 0.05,
        // Share of the host's OSDs that their CPU quota stops (osd.throttledShare).
        cpu_quota: $._config.osd.host.share,
        // 1: on.
        numa_balancing: 1,
        // 1: always.
        huge_pages: 1,
        // A disk of an OSD: 0 is full power.
        nvme_power_state: 1,
      },
    },
  },
}
