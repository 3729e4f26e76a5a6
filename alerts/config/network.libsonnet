// Networks.
// What the three alerts of lost frames start from; a site changes each of them by itself.
local drops = {
  severity: 'warning',
  window: '5m',
  // Twice the window: one burst, however big, has left it by then.
  'for': '10m',
  // Below this many in the window a share means nothing.
  minimumDrops: 10,
  // Mathis: a TCP flow can't exceed MSS/RTT * 1.22/sqrt(loss). At 1460 B, 0.16 ms and this share that is
  // 28 Gb/s: from here on loss itself limits a fast link. Measured on a storage node with too small rings: 8e-5.
  share: 1e-5,
};

{
  _config+:: {
    // The networks whose interfaces must agree on an MTU across a cluster: Ceph's two, as the daemon names them.
    networkRoles: ['ceph_public', 'ceph_cluster'],

    // Window of the loss by port that is drawn.
    nicLossWindow: '5m',

    alerts+: {
      PlumblineNicRingDrops: drops,

      // The card's own buffer: as above.
      PlumblineNicFifoDrops: drops,

      // The same loss, where the first remedy is at hand. Some drivers round what is set: 90 % of the maximum is the maximum.
      PlumblineNicRingSmall: drops { belowShare: 0.9 },

      PlumblineNicErrors: {
        severity: 'warning',
        // Cables fail in fits.
        window: '15m',
        'for': '20m',
        // Ethernet allows one bad bit in 1e12, for frames of 1518 B one in 8e7. This is 80 times that.
        share: 1e-6,
        minimumErrors: 10,
      },

      PlumblineNicIrqsOnOneCpu: {
        severity: 'warning',
        window: '5m',
        // A few big flows may meet on one queue for a while.
        'for': '30m',
        // Leaves at most 1.23 effective CPUs (inverse Simpson index) however the rest is spread.
        share: 0.9,
        // At a microsecond or two a packet, this is a hundredth of a CPU: below it one CPU is enough.
        packetsPerSecond: 10000,
      },

      PlumblineTcpRetransmits: {
        severity: 'warning',
        window: '5m',
        'for': '15m',
        // A storage network loses next to nothing. At 1 % a flow with 0.16 ms of round trip is held to about 0.9 Gb/s (Mathis).
        share: 0.01,
        minimumSegments: 100,
      },

      PlumblineTcpListenOverflow: {
        severity: 'warning',
        window: '5m',
        // One storm of reconnects has left the window by then.
        'for': '10m',
        minimumOverflows: 10,
      },

      // Autonegotiation takes seconds. Ports that are slower by design (a 25 Gb/s card on a 10 Gb/s switch):
      // lower the share.
      PlumblineNicLinkSlow: { severity: 'warning', 'for': '15m', belowShare: 1 },

      // As a bond's member. A port that was never up since yesterday has no cable, or is off on purpose.
      PlumblineNicLinkDown: { severity: 'warning', 'for': '5m', window: '1d' },

      // Three times down and up. A reboot, a new cable or another speed is one or two.
      PlumblineNicLinkFlapping: { severity: 'warning', 'for': '0m', window: '1h', changes: 6, keepFiringFor: '30m' },

      // 5 m outlasts the reboot of a port, not of a switch: a switch that reboots is worth knowing.
      PlumblineBondSlaveDown: { severity: 'warning', 'for': '5m' },

      // LACP settles within seconds, with slow LACPDUs in 90.
      PlumblineBondMisaggregated: { severity: 'warning', 'for': '5m' },

      PlumblineNicMtuMismatch: {
        severity: 'warning',
        // Somebody who changes all hosts needs some minutes. A page meanwhile suspects it (blame.libsonnet).
        'for': '15m',
        // The description names up to this many interfaces of each MTU; of the others it gives the number.
        namedInterfaces: 5,
      },

      PlumblinePathMtuBelowInterface: {
        severity: 'warning',
        // One run is enough: the size above the one that passes has had six packets, and the one below an answer.
        // 15 m for somebody who changes hosts and switches one after the other.
        'for': '15m',
      },

      // A run is 100 packets: one of them is 1 %, at which TCP is held to about 0.9 Gb/s (see PlumblineTcpRetransmits).
      // Single ones happen, so most of the last runs have to have lost some.
      PlumblineNetworkLoss: { severity: 'warning', 'for': '5m', share: 0 },

      PlumblineInfinibandPortDown: {
        severity: 'warning',
        'for': '5m',
        // The kernel's ib_port_state ACTIVE and physical state LinkUp.
        activeState: 4,
        linkUpState: 5,
        // Whoever unplugs a cable for good is reminded for this long.
        window: '1d',
      },

      PlumblineInfinibandErrors: {
        severity: 'warning',
        window: '1h',
        'for': '5m',
        // InfiniBand allows one bad bit in 1e12: at 40 Gb/s 144 in an hour of full load.
        minimumErrors: 100,
        // Dropped management packets, and packets a switch had no way for: no fault of this link.
        benign: 'VL15_dropped|port_rcv_switch_relay_errors',
      },

      PlumblineNicPauseStorm: {
        severity: 'warning',
        window: '5m',
        'for': '10m',
        // One pause frame holds a 10 Gb/s link for at most 3.4 ms: 100 a second stop it for up to a third of the time.
        framesPerSecond: 100,
      },

      PlumblineSoftnetTimeSqueeze: {
        severity: 'warning',
        window: '5m',
        'for': '15m',
        // The floor; below it others found nothing but noise.
        squeezesPerSecond: 10,
        // Growing with load: squeezes per packet. A round that uses up netdev_budget (300 packets) squeezes
        // once in 300 packets (3.3e-3); at a third of that, a third of the packets sat in cut-off rounds.
        perPacket: 1e-3,
      },

      PlumblineSoftnetBacklogOverflow: {
        severity: 'warning',
        window: '5m',
        // One burst has left the window by then.
        'for': '10m',
        minimumDrops: 10,
      },
    },
  },
}
