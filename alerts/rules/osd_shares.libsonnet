// Where the time of client operations goes, OSD by OSD.
//
// A write is done when this OSD and its replicas have committed. Its time:
//   queue (message's arrival → taken from the queue) + prepare (→ handed to store and replicas) + commit wait,
// and of the commit wait as much is this OSD's own store as a transaction takes there on average; what is left was spent
// on the replicas and the network. An OSD that waits for nobody but itself has no rest.
local osds = import '../lib/osd.libsonnet';

{
  local config = $._config,
  local labels = osds.labels(config),

  local latency(operation, part) =
    'max by (%s) (plumbline:osd_latency:mean5m{operation="%s", part="%s"})' % [labels.osd, operation, part],
  local store(part) = osds.store(config, part),
  local parts(operation, name) = osds.part(config, operation, name),

  // The smaller of two, where there are both.
  local smaller(a, b) = |||
    (%(a)s < on (%(osd)s) %(b)s)
    or on (%(osd)s)
    (%(b)s <= on (%(osd)s) %(a)s)
  ||| % (labels { a: a, b: b }),

  local less(from, what) = |||
    clamp_min(
      %(from)s
      - on (%(osd)s)
      %(what)s,
      0
    )
  ||| % (labels { from: from, what: what }),

  local part(operation, name, expr) = {
    record: 'plumbline:osd_%s_part:seconds' % operation,
    expr: expr,
    labels: { part: name },
  },

  local share(operation) = {
    record: 'plumbline:osd_%s_share:ratio' % operation,
    expr: |||
      plumbline:osd_%(operation)s_part:seconds
      / on (%(osd)s) group_left ()
      (%(total)s > 0)
    ||| % (labels { operation: operation, total: latency(operation, 'total') }),
  },

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-osd-shares.rules',
      interval: config.paces.compared,
      rules: [
        part('write', 'queue', latency('write', 'queue')),
        part('write', 'prepare', latency('write', 'prepare')),
        part('write', 'store', smaller(latency('write', 'commit_wait'), store('commit'))),
        part('write', 'peers', less(latency('write', 'commit_wait'), parts('write', 'store'))),
        share('write'),
        part('read', 'queue', latency('read', 'queue')),
        // A read of a replicated pool goes to the store while it is prepared, one of an erasure-coded afterwards.
        part('read', 'store', smaller(latency('read', 'process'), store('read'))),
        part('read', 'prepare', less(latency('read', 'prepare'), parts('read', 'store'))),
        part('read', 'other', less(less(latency('read', 'process'), parts('read', 'store')), parts('read', 'prepare'))),
        share('read'),
      ],
    }],
  },
}
