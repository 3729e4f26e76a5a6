// Latency budget: the one operation that is divided into stages, as seed 003's slide does: a 4 KiB write, one in flight.
{
  _config+:: {
    budget: {
      // Whose mean is the whole: the canary's in RADOS, which never stops, and a periodic probe's on an image. Random
      // and sequential are both spread over all placement groups' primaries within a run.
      radosWorkload: 'rados-ops-4k',
      rbdWorkloads: 'rbd-(?:rand)?write-4k-qd1-j1',

      // Parts add up to their whole when they miss it by less than this: they are exact but for floating point, and what
      // has come or gone meanwhile is hardly ever as little as a hundredth.
      addsUpWithin: 0.01,

      // One way there and back: the kernel's answer, where it is measured, else a handshake, which has a process in it.
      roundTrips: ['icmp-rtt-56', 'tcp-rtt'],
    },
  },
}
