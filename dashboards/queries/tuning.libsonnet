// The queries of tuning compliance: documented advice that is not followed, and twins that are not alike.
local all = 'cluster=~"$cluster"';
local sel(more='') = '{%s%s}' % [all, if more == '' then '' else ', ' + more];
local chosen(more='') = sel('severity=~"$severity"' + (if more == '' then '' else ', ' + more));
local finding(more='') = 'plumbline_finding' + chosen(more);

// A fact is a series of 1 with the label `value`; facts that agree in `by` are those of twins.
//
// Apart is whoever has a value that at most half of its twins have; `most` names what more than half have. Where no
// value has that many (two nodes that differ, or four against four) all of them are shown and none is called right.
local apart(facts, by) =
  local words = { facts: facts, by: by };
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
  ||| % words;

// A number as a fact.
local number(metric, by, more='') = 'count_values by (cluster, instance, %s) ("value", %s%s)' % [by, metric, sel(more)];
// A label as a fact.
local word(metric, label, by, more='') =
  'group by (cluster, instance, %s, value) (label_replace(%s%s, "value", "$1", "%s", "(.+)"))' % [by, metric, sel('%s!=""%s' % [label, if more == '' then '' else ', ' + more]), label];
local named(expr, name) = 'label_replace(%s, "setting", "%s", "", "")' % [expr, name];
local either(facts) = std.join('\nor\n', facts);

// The kernel works these out from the memory it finds at boot: equal hosts differ by a few pages.
local byMemory = 'net[.]ipv4[.]tcp_mem|kernel[.]threads-max|fs[.]file-max|vm[.]min_free_kbytes';
local kernel = {
  by: 'cluster, name, field',
  facts: either([
    number('plumbline_sysctl_value', 'name, field', 'name!~"%s"' % byMemory),
    word('plumbline_sysctl_info', 'value', 'name', 'name!="kernel.osrelease"'),
  ]),
};

// Twins of a port: those of the same name on the other nodes of the cluster.
local port = {
  local real = 'device!="lo"',
  by: 'cluster, device, setting',
  facts: either([
    named(number('plumbline_nic_mtu_bytes', 'device', real), 'MTU'),
    named(number('plumbline_nic_speed_bits_per_second', 'device', real), 'speed'),
    named(word('plumbline_nic_info', 'driver', 'device', real), 'driver'),
    named(word('plumbline_nic_info', 'firmware', 'device', real), 'firmware'),
    'group by (cluster, instance, device, setting, value) (label_replace(%s, "setting", "ring $1", "ring", "(.+)"))' % number('plumbline_nic_ring_entries', 'device, ring'),
    'group by (cluster, instance, device, setting, value) (label_replace(%s, "setting", "channels $1", "channel", "(.+)"))' % number('plumbline_nic_channels', 'device, channel'),
    'group by (cluster, instance, device, setting, value) (label_replace(%s, "setting", "offload $1", "feature", "(.+)"))' % number('plumbline_nic_offload_enabled', 'device, feature'),
  ]),
};

// Twins of a disk: those of the same model in the cluster.
local disk = {
  local model = 'group by (cluster, instance, device, model) (plumbline_disk_info%s)' % sel('model!=""'),
  local ofModel(expr) = '%s * on (cluster, instance, device) group_left (model) %s' % [expr, model],
  by: 'cluster, model, setting',
  facts: either([
    named(word('plumbline_disk_info', 'firmware', 'device, model', 'model!=""'), 'firmware'),
    named(ofModel(word('plumbline_disk_queue_info', 'scheduler', 'device')), 'scheduler'),
    named(ofModel(word('plumbline_disk_queue_info', 'write_cache', 'device')), 'write cache'),
  ] + [
    named(ofModel(number(each[0], 'device')), each[1])
    for each in [
      ['plumbline_disk_read_ahead_bytes', 'read-ahead'],
      ['plumbline_disk_queue_requests', 'nr_requests'],
      ['plumbline_disk_rq_affinity', 'rq_affinity'],
      ['plumbline_disk_nomerges', 'nomerges'],
      ['plumbline_disk_queue_depth', 'queue depth'],
    ]
  ]),
};

local version = {
  by: 'cluster, setting',
  facts: either([
    'group by (cluster, instance, setting, value) (%s)' % named('plumbline_sysctl_info' + sel('name="kernel.osrelease"'), 'kernel'),
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
    followed(severity):: '1 - avg(plumbline_finding%s)' % sel('severity="%s"' % severity),
    open(severity):: 'sum(plumbline_finding%s)' % sel('severity="%s"' % severity),
    nodes: 'count(sum by (cluster, instance) (plumbline_finding%s) > 0) or vector(0)' % sel('severity!="info"'),
    nodesApart: 'count(count by (cluster, instance) (%s)) or vector(0)' % std.join('or\n', [apart(of.facts, of.by) for of in [kernel, version]]),
  },
  open: 'max by (severity, check, subject, cluster, instance) (%s == 1)' % finding(),
  checks: {
    open: 'sum by (check) (%s)' % finding(),
    nodes: 'count by (check) (sum by (check, cluster, instance) (%s) > 0)' % finding(),
    applies: 'count by (check) (%s)' % finding(),
    followed: '1 - avg by (check) (%s)' % finding(),
  },
  nodes: 'topk(15, sum by (cluster, instance) (%s) > 0)' % finding(),
  time: {
    open: 'sum by (severity) (%s)' % finding(),
    // Only where it was known before and is known now: a node that was away neither opens nor closes anything.
    opened: 'count((%s == 1) and (%s offset $__interval == 0)) or vector(0)' % [finding(), finding()],
    closed: 'count((%s == 0) and (%s offset $__interval == 1)) or vector(0)' % [finding(), finding()],
    followed: '1 - avg by (subsystem) (label_replace(%s, "subsystem", "$1", "check", "([^.]+)[.].*"))' % finding(),
  },
  drift: {
    kernel: apart(kernel.facts, kernel.by),
    ports: apart(port.facts, port.by),
    disks: apart(disk.facts, disk.by),
    versions: 'count by (cluster, setting, value) (%s)' % version.facts,
    versionsApart: apart(version.facts, version.by),
  },
}
