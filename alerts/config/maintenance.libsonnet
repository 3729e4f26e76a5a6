// Announced maintenance.
{
  _config+:: {
    maintenance: {
      // A lease is remembered for so long after its last scrape: as long as the longest that `plumbline maintenance` takes.
      longest: '3d',

      // `noout` of the whole cluster names no host and is often forgotten: after a working day it announces nothing.
      flagLasts: '12h',

      // What a rule remembers of its own last evaluations: a restart of Prometheus, a failover of the manager.
      memory: '5m',

      // Flags of a single host that announce its absence: Ceph's, and cephadm's maintenance mode.
      hostFlags: ['noout', 'maintenance'],
    },

    alerts+: {
      // Read when convenient; it holds back what the absence of the host explains.
      PlumblineMaintenance: { severity: 'info', 'for': '0m' },
    },
  },
}
