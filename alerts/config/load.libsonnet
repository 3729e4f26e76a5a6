// Load: when a canary's disk or OSD counts as busier than it was when the baseline was recorded.
{
  _config+:: {
    load: {
      // What takes an alert back has to be as quick as what fires it.
      interval: '1m',

      // Serves clearly more: this many times the reference. A day's ordinary sway stays below; what is served grows with
      // the load, never with a fault, because a disk that got slower does not serve more.
      factor: 1.5,

      // The least reference, as a share of what the device can do. One recorded at rest would otherwise be busy with ten
      // operations a second; and no more than ten times the latency can ever be put down to load.
      share: 0.1,

      // Operations a second: less at the recording is as much as nothing, and this many times `factor` are a load.
      leastRecorded: 10,

      // What a device can do, where no baseline of its class on its node tells: usual figures of 4 KiB operations and of
      // big ones. High rather than low: where the truth is lower, busy is said less often.
      ability: {
        operations: { hdd: 150, nvme: 400e3, other: 50e3 },
        bytes: { hdd: 150e6, nvme: 3e9, other: 500e6 },
      },

      // Device time may be this many times that of the same hours before, and the device is as it was: a recorded
      // baseline's least tolerance.
      deviceTolerance: 1.25,
    },

    alerts+: {
      PlumblineCanaryBusy: {
        severity: 'info',
        // A burst is over by then.
        'for': '10m',
        keepFiringFor: '10m',
      },
    },
  },
}
