// The queries of the capacity review, apart from its layout. What is shown is recorded by rules; docs/capacity.md has
// the formulas. Days come as seconds: Grafana says weeks and years by itself.
local promql = import '../../alerts/lib/promql.libsonnet';
local matchers = import '../lib/matchers.libsonnet';
local proof = import '../lib/proof.libsonnet';

local sel = matchers.selector('cluster=~"$cluster"');
local recorded(name, more='') = 'plumbline:capacity_%s%s' % [name, sel(more)];
local class = 'cluster, device_class';
local pool = 'cluster, pool, pool_id';
local host = 'cluster, device_class, host';
local day = 86400;

// One series, for a tile.
local most(expr) = 'topk(1, %s)' % expr;
local least(expr) = 'bottomk(1, %s)' % expr;

local over(operation, labels, expr) = '%s by (%s) (%s)' % [operation, labels, expr];

// The range of a forecast: the soonest by any slope; and the latest, unless some slope sees no end at all.
local soonest(labels, days) = '%s * %d' % [over('min', labels, days), day];
local latest(labels, days, growth) =
  '%s * %d and on (%s) (%s == on (%s) %s)'
  % [over('max', labels, days), day, labels, over('count', labels, days), labels, over('count', labels, growth)];

local growth = recorded('growth:bytes_per_second');
local poolGrowth = recorded('pool_growth:bytes_per_second');
local full = recorded('time_to_full:days');
local poolFull = recorded('pool_time_to_full:days');
local unsafe = recorded('time_to_host_loss_unsafe:days');
local perDay(operation, labels, expr) = '%s * %d' % [over(operation, labels, expr), day];
// Of CRUSH's buckets the hosts, under the label that OSDs have.
local ofHost(name) = over('max', host, 'label_replace(%s, "host", "$1", "name", "(.+)")' % recorded(name, 'domain="host"'));

function(config)
  // Whether a slope has its history: as the rule that records it asks (alerts/rules/capacity.libsonnet).
  local slopes = config.capacity.slopes;
  local ofSlopes(expr) =
    std.join('\nor\n', ['label_replace(%s, "slope", "%s", "", "")' % [expr(each), each.slope] for each in slopes]);

  {
    history: {
      needed: ofSlopes(function(each) 'vector(%d)' % promql.seconds(each.history)),
      there: ofSlopes(function(each)
        '(0 * count(present_over_time(%s[%s] offset %s)) + 1 or %s)'
        % [recorded('used:bytes'), config.capacity.historyWindow, each.history, proof.zero()]),
    },
    loss: {
      verdict: most(recorded('host_loss:verdict')),
      verdicts: over('max', class, recorded('host_loss:verdict')),
      after: most(over('max', class, recorded('after_loss:ratio'))),
      // Of the class that is fullest then: bytes of small disks and of large ones are no comparison.
      left: '%s and on (%s) topk(1, %s)' % [recorded('host_loss_left:bytes'), class, over('max', class, recorded('host_loss:ratio'))],
      lefts: over('min', class, recorded('host_loss_left:bytes')),
      soonest: least(soonest(class, unsafe)),
      unsafeSoonest: soonest(class, unsafe),
      latest: latest(class, unsafe, growth),
      rebuild: most(recorded('rebuild:seconds')),
      ratio: recorded('host_loss:ratio'),
      // Which one it is.
      worst: 'topk by (%s) (1, max by (%s, domain, name, scope) (%s))' % [class, class, recorded('after_loss:ratio')],
      worstData: 'max by (%(by)s) (%(lost)s) and on (%(by)s) topk by (%(class)s) (1, max by (%(by)s) (%(after)s))'
                 % { by: class + ', domain, name, scope', class: class, lost: recorded('lost:bytes'), after: recorded('after_loss:ratio') },
    },
    class: {
      size: recorded('size:bytes'),
      used: recorded('used:bytes'),
      ratio: over('max', class, recorded('used:ratio')),
      fullest: over('max', class, recorded('fullest:ratio')),
      limits: 'max by (limit) (%s)' % recorded('limit:ratio'),
      left: recorded('left:bytes'),
      slowest: perDay('min', class, growth),
      fastest: perDay('max', class, growth),
      soonest: soonest(class, full),
      latest: latest(class, full, growth),
      growth: '%s * %d' % [growth, day],
      days: '%s * %d' % [full, day],
      unsafeDays: '%s * %d' % [unsafe, day],
    },
    pool: {
      info: 'max by (%s, pool_type, failure_domain) (%s)' % [pool, recorded('pool:info')],
      stored: over('max', pool, recorded('pool_stored:bytes')),
      maxAvail: over('max', pool, recorded('pool_max_avail:bytes')),
      used: 'max by (%(pool)s) (%(stored)s / (%(stored)s + %(left)s))'
            % { pool: pool, stored: recorded('pool_stored:bytes'), left: recorded('pool_max_avail:bytes') },
      heals: over('min', pool, recorded('self_healing:bool')),
      slowest: perDay('min', pool, poolGrowth),
      fastest: perDay('max', pool, poolGrowth),
      soonest: soonest(pool, poolFull),
      latest: latest(pool, poolFull, poolGrowth),
    },
    load: {
      headroom: recorded('headroom:ratio'),
      demand: recorded('demand:ratio'),
      capability: '0 * max by (layer, device_class, figure) (%s) + 1' % recorded('demand:ratio'),
      recovery: recorded('recovery:bytes_per_second'),
      recoveryRate: recorded('recovery_rate:bytes_per_second'),
    },
    host: {
      used: over('sum', host, recorded('osd_used:bytes', 'host!=""')),
      size: over('sum', host, recorded('osd_size:bytes', 'host!=""')),
      ratio: '%s / %s' % [over('sum', host, recorded('osd_used:bytes', 'host!=""')), over('sum', host, recorded('osd_size:bytes', 'host!=""'))],
      fullest: over('max', host, recorded('osd_used:ratio', 'host!=""')),
      after: ofHost('after_loss:ratio'),
    },
    database: {
      local disk = 'cluster, instance, device',
      osds: over('max', disk, recorded('database_osds:count')),
      data: over('max', disk, recorded('database_used:bytes')),
      fullest: |||
        max by (%(disk)s) (
          group by (%(disk)s, ceph_daemon) (label_replace(plumbline_disk_use_info%(uses)s, "ceph_daemon", "$1", "user", "(.+)"))
          * on (cluster, instance, ceph_daemon) group_left ()
          plumbline:osd_database_used:ratio%(sel)s
        )
      ||| % { disk: disk, uses: sel('use="osd-db"'), sel: sel() },
    },
    wear: |||
      plumbline:disk_endurance_left:seconds%(sel)s
      * on (cluster, instance, device) group_left (model, serial, device_class, osd)
      topk by (cluster, instance, device) (1, group by (cluster, instance, device, model, serial, device_class, osd) (plumbline_disk_info%(sel)s))
    ||| % { sel: sel() },
  }
