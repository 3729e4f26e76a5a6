// Servers of distributed file systems: GlusterFS, MooseFS.
{
  _config+:: {
    alerts+: {
      PlumblineGlusterBrickDown: {
        severities: [
          // A page: clients of this part of the volume can't write, or some files are gone for them. Asked once a minute.
          { severity: 'critical', needed: true, 'for': '3m' },
          // A ticket: the other copies serve. Outlasts a reboot.
          { severity: 'warning', needed: false, 'for': '10m' },
        ],
      },

      PlumblineGlusterPeerLost: {
        severities: [
          // A page: all servers that can be seen have stopped their bricks of the volume.
          { severity: 'critical', quorum: true, 'for': '3m' },
          // A ticket. Outlasts a reboot.
          { severity: 'warning', quorum: false, 'for': '10m' },
        ],
      },

      PlumblineGlusterHealStalled: {
        severity: 'warning',
        // Longer than `compared`: until then the count is held against one from before the brick came back.
        'for': '1h',
        compared: '30m',
      },

      // A page: whoever reads these files waits, or gets an error. Outlasts the restart of a chunkserver.
      PlumblineMoosefsChunksMissing: { severity: 'critical', 'for': '5m' },

      // A ticket: the master makes new copies by itself, if it has room and servers.
      PlumblineMoosefsRedundancyLow: { severity: 'warning', 'for': '15m' },
    },
  },
}
