// The queries of tuning compliance: documented advice that is not followed, and peers that differ.
local matchers = import '../lib/matchers.libsonnet';
local proof = import '../lib/proof.libsonnet';

local all = 'cluster=~"$cluster"';
local sel = matchers.selector(all);
local chosen(more='') = sel(matchers.join(['urgency=~"$severity"', more]));
local finding(more='') = 'plumbline_finding' + chosen(more);

// Words: a fact is a series of 1 with the label `value`; facts that agree in `by` are those of peers. A series differs if it has
// a value that at most half of its peers have; `most` names what more than half have. Where no value has that many (two
// nodes that differ, or four against four) all of them are shown and none is called right.
local apart(facts, by) =
  |||
    (
      %(facts)s
    )
    * on (%(by)s, value) group_left ()
    (
      count by (%(by)s, value) (%(facts)s)
      / on (%(by)s) group_left ()
      count by (%(by)s) (%(facts)s)
      <= 0.5
    )
    * on (%(by)s) group_left (most)
    (
      max by (%(by)s, most) (
        label_replace(
          (
            count by (%(by)s, value) (%(facts)s)
            / on (%(by)s) group_left ()
            count by (%(by)s) (%(facts)s)
            > 0.5
          ) * 0 + 1,
          "most", "$1", "value", "(.*)"
        )
      )
      or on (%(by)s)
      label_replace(count by (%(by)s) (%(facts)s) * 0 + 1, "most", "no majority", "", "")
    )
  ||| % { facts: facts, by: by };

// Numbers: a series differs if it is not the median of its peers. A value that more than half of them have is the median, and
// of a tie the median lies between the two, where nobody is: all of them are shown. Comparing comes before numbers become
// text, because text is what costs: 25,000 offloads, rings and MTUs of 200 nodes.
local off(metric, peers, by) =
  |||
    count_values by (cluster, instance, %(by)s) (
      "value", %(metric)s != on (%(peers)s) group_left () quantile by (%(peers)s) (0.5, %(metric)s)
    )
    * on (%(peers)s) group_left (most)
    count_values by (%(peers)s) ("most", quantile by (%(peers)s) (0.5, %(metric)s))
  ||| % { metric: metric, peers: peers, by: by };

local word(metric, label, by, more='') =
  'group by (cluster, instance, %s, value) (label_replace(%s%s, "value", "$1", "%s", "(.+)"))' % [by, metric, sel(matchers.join(['%s!=""' % label, more])), label];
local named(expr, name) = 'label_replace(%s, "setting", "%s", "", "")' % [expr, name];
// Named after what a label says; the label itself goes.
local namedBy(expr, prefix, label) =
  'max by (cluster, instance, device, setting, value, most) (label_replace(%s, "setting", "%s $1", "%s", "(.+)"))' % [expr, prefix, label];
local either(expressions) = std.join('\nor\n', ['(%s)' % each for each in expressions]);

// The kernel works these out from the memory it finds at boot: equal hosts differ by a few pages.
local byMemory = 'net[.]ipv4[.]tcp_mem|kernel[.]threads-max|fs[.]file-max|vm[.]min_free_kbytes';
local kernel = either([
  off('plumbline_sysctl_value' + sel('sysctl!~"%s"' % byMemory), 'cluster, sysctl, field', 'sysctl, field'),
  apart(word('plumbline_sysctl_info', 'value', 'sysctl', 'sysctl!="kernel.osrelease"'), 'cluster, sysctl'),
]);

// How the CPUs save power and the kernel gives memory. Of idle states whether, not on how many CPUs.
local power =
  local facts(expr) = 'group by (cluster, instance, setting, value) (%s)' % expr;
  local state(comparison, value) =
    'label_replace(label_replace(plumbline_cpu_idle_allowed_cpus%s %s, "value", "%s", "", ""), "setting", "idle state $1", "idle_state", "(.+)")'
    % [sel(), comparison, value];
  apart(
    either([
      facts(named(word('plumbline_cpu_governor_cpus', 'governor', 'governor'), 'CPU governor')),
      facts(named(word('plumbline_hugepages_info', 'enabled', 'enabled'), 'huge pages')),
      facts(named(word('plumbline_hugepages_info', 'defrag', 'defrag'), 'huge pages, defrag')),
      facts(state('> 0', 'allowed')),
      facts(state('== 0', 'disabled')),
    ]),
    'cluster, setting'
  );

// Twins of a port: those of the same name on the other nodes of the cluster.
local ports =
  local of(metric) = metric + sel('device!="lo"');
  local peers(label) = 'cluster, device, ' + label;
  either([
    named(off(of('plumbline_nic_mtu_bytes'), 'cluster, device', 'device'), 'MTU'),
    named(off(of('plumbline_nic_speed_bytes_per_second'), 'cluster, device', 'device'), 'speed'),
    namedBy(off(of('plumbline_nic_ring_entries'), peers('ring'), 'device, ring'), 'ring', 'ring'),
    namedBy(off(of('plumbline_nic_channels'), peers('channel'), 'device, channel'), 'channels', 'channel'),
    namedBy(off(of('plumbline_nic_offload_enabled'), peers('feature'), 'device, feature'), 'offload', 'feature'),
    apart(
      either([named(word('plumbline_nic_info', label, 'device', 'device!="lo"'), label) for label in ['driver', 'firmware']]),
      'cluster, device, setting'
    ),
  ]);

// Twins of a disk: those of the same model in the cluster.
local disks =
  local ofModel(expr) = '(%s) * on (cluster, instance, device) group_left (model) plumbline:disk_kind:info%s' % [expr, sel('model!=""')];
  either([
    apart(
      either([
        named(word('plumbline_disk_info', 'firmware', 'device, model', 'model!=""'), 'firmware'),
        // Both at once, because the join with the model is what costs.
        named(ofModel('group by (cluster, instance, device, value) (label_join(plumbline_disk_queue_info%s, "value", ", ", "scheduler", "write_cache"))' % sel()), 'scheduler, write cache'),
      ]),
      'cluster, model, setting'
    ),
    // All at once, too.
    off(
      ofModel(either([
        named(each[0] + sel(), each[1])
        for each in [
          ['plumbline_disk_read_ahead_bytes', 'read-ahead'],
          ['plumbline_disk_queue_requests', 'nr_requests'],
          ['plumbline_disk_rq_affinity', 'rq_affinity'],
          ['plumbline_disk_nomerges', 'nomerges'],
          ['plumbline_disk_queue_depth', 'queue depth'],
          ['plumbline_disk_power_state_number', 'power state'],
        ]
      ])),
      'cluster, model, setting',
      'device, model, setting'
    ),
  ]);

local version = {
  by: 'cluster, setting',
  facts: either([
    'group by (cluster, instance, setting, value) (%s)' % named('plumbline_sysctl_info' + sel('sysctl="kernel.osrelease"'), 'kernel'),
    'group by (cluster, instance, setting, value) (%s)' % named(word('plumbline_build_info', 'version', 'version'), 'Plumbline'),
    // Ceph names the host; which node that is, a rule knows.
    'group by (cluster, instance, setting, value) (%s)' % named(|||
      group by (cluster, ceph_daemon, value) (label_replace(ceph_osd_metadata%s, "value", "$1", "ceph_version", "(?:ceph version )?(\\S+).*"))
      * on (cluster, ceph_daemon) group_left (instance) plumbline:osd_host:info%s
    ||| % [sel(), sel()], 'Ceph'),
  ]),
};

{
  verdict: {
    followed(severity):: '1 - avg(plumbline_finding%s)' % sel('urgency="%s"' % severity),
    open: 'sum(plumbline_finding%s) or %s' % [sel('urgency=~"critical|warning"'), proof.zero('plumbline_finding' + sel())],
    nodes: proof.counted('sum by (cluster, instance) (plumbline_finding%s) > 0' % sel('urgency!="info"'), of='plumbline_finding' + sel()),
    nodesApart: proof.counted('count by (cluster, instance) (%s)' % either([kernel, apart(version.facts, version.by)])),
  },
  open: 'max by (urgency, check, subject, cluster, instance) (%s == 1)' % finding(),
  checks: {
    open: 'sum by (check) (%s)' % finding(),
    nodes: 'count by (check) (sum by (check, cluster, instance) (%s) > 0)' % finding(),
    applies: 'count by (check) (%s)' % finding(),
    followed: '1 - avg by (check) (%s)' % finding(),
  },
  nodes: 'topk(15, sum by (cluster, instance) (%s) > 0)' % finding(),
  time: {
    open: 'sum by (urgency) (%s)' % finding(),
    // Only where it was known before and is known now: a node that was away neither opens nor closes anything.
    opened: proof.counted('(%s == 1) and (%s offset $__interval == 0)' % [finding(), finding()], of=finding()),
    closed: proof.counted('(%s == 0) and (%s offset $__interval == 1)' % [finding(), finding()], of=finding()),
    followed: '1 - avg by (subsystem) (label_replace(%s, "subsystem", "$1", "check", "([^.]+)[.].*"))' % finding(),
  },
  drift: {
    kernel: kernel,
    power: power,
    ports: ports,
    disks: disks,
    versions: 'count by (cluster, setting, value) (%s)' % version.facts,
    versionsApart: apart(version.facts, version.by),
  },
}
