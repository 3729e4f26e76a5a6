// Ceph's own metrics.
{
  _config+:: {
    ceph: {
      // Four scrapes at 60 s, the slowest in use; the rules' names say 5m.
      window: '5m',
    },
  },
}
