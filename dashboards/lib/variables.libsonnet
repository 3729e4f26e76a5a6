// Template variables, the same on every dashboard, so that a link keeps them.
local g = import '../g.libsonnet';
local v = g.dashboard.variable;

{
  datasource:
    v.datasource.new('datasource', 'prometheus')
    + v.datasource.generalOptions.withLabel('Data source'),

  // Optional: a site with one cluster has no such label, and `.*` matches a missing one.
  cluster:
    v.query.new('cluster')
    + v.query.withDatasourceFromVariable(self.datasource)
    + v.query.queryTypes.withLabelValues('cluster', 'plumbline_build_info')
    + v.query.generalOptions.withLabel('Cluster')
    + v.query.selectionOptions.withIncludeAll(true, '.*')
    + v.query.selectionOptions.withMulti(false)
    + v.query.refresh.onTime()
    + v.query.withSort(1),

  instance:
    v.query.new('instance')
    + v.query.withDatasourceFromVariable(self.datasource)
    + v.query.queryTypes.withLabelValues('instance', 'plumbline_build_info{cluster=~"$cluster"}')
    + v.query.generalOptions.withLabel('Node')
    + v.query.selectionOptions.withIncludeAll(false)
    + v.query.refresh.onTime()
    + v.query.withSort(1),

  // Several: each has rows of its own.
  instances: self.instance + v.query.selectionOptions.withMulti(true),

  // The same, where a page is about all nodes and can show some.
  anyInstance:
    self.instances
    + v.query.selectionOptions.withIncludeAll(true, '.*'),

  statistic:
    v.custom.new('statistic', ['p50', 'p99', 'mean'])
    + v.custom.generalOptions.withLabel('Statistic'),

  // What a disk is called, and what was asked of it; each may be all.
  device:
    v.query.new('device')
    + v.query.withDatasourceFromVariable(self.datasource)
    + v.query.queryTypes.withLabelValues('device', 'plumbline_disk_info{cluster=~"$cluster", instance="$instance"}')
    + v.query.generalOptions.withLabel('Disk')
    + v.query.selectionOptions.withIncludeAll(true, '.*')
    + v.query.selectionOptions.withMulti(true)
    + v.query.refresh.onTime()
    + v.query.withSort(1),

  operation:
    v.custom.new('operation', ['read', 'write', 'flush', 'discard'])
    + v.custom.selectionOptions.withIncludeAll(true, '.*')
    + v.custom.selectionOptions.withMulti(true)
    + v.custom.generalOptions.withLabel('Operation'),

  // Disks of one node: each has rows of its own.
  disk: self.device + v.query.selectionOptions.withIncludeAll(false),

  // What disks are compared within.
  diskClass:
    v.query.new('device_class')
    + v.query.withDatasourceFromVariable(self.datasource)
    + v.query.queryTypes.withLabelValues('device_class', 'plumbline_disk_info{cluster=~"$cluster"}')
    + v.query.generalOptions.withLabel('Class')
    + v.query.selectionOptions.withIncludeAll(true, '.*')
    + v.query.selectionOptions.withMulti(true)
    + v.query.refresh.onTime()
    + v.query.withSort(1),

  // Ports of one node; called `device`, because links carry it under that name.
  nic:
    v.query.new('device')
    + v.query.withDatasourceFromVariable(self.datasource)
    + v.query.queryTypes.withLabelValues('device', 'plumbline_nic_info{cluster=~"$cluster", instance="$instance", driver!="loopback"}')
    + v.query.generalOptions.withLabel('Port')
    + v.query.selectionOptions.withIncludeAll(false)
    + v.query.selectionOptions.withMulti(true)
    + v.query.refresh.onTime()
    + v.query.withSort(1),

  // What probes are and measure; each may be all.
  local ofProbes(name, label, metric) =
    v.query.new(name)
    + v.query.withDatasourceFromVariable(self.datasource)
    + v.query.queryTypes.withLabelValues(name, metric + '{cluster=~"$cluster", instance=~"$instance"}')
    + v.query.generalOptions.withLabel(label)
    + v.query.selectionOptions.withIncludeAll(true, '.*')
    + v.query.selectionOptions.withMulti(true)
    + v.query.refresh.onTime()
    + v.query.withSort(1),

  layer: ofProbes('layer', 'Layer', 'plumbline_probe_info'),
  probeClass: ofProbes('device_class', 'Class', 'plumbline_probe_info'),
  probe: ofProbes('probe', 'Probe', 'plumbline_probe_info'),
  workload: ofProbes('workload', 'Workload', 'plumbline_baseline_missing'),

  // How much a finding matters.
  severity:
    v.custom.new('severity', ['critical|warning', 'critical', 'warning', 'info'])
    + v.custom.selectionOptions.withIncludeAll(true, '.*')
    + v.custom.selectionOptions.withMulti(true)
    + v.custom.generalOptions.withLabel('Severity'),

  // OSDs, each with rows of its own; a device class, a pool and a vantage may be all.
  ceph_daemon:
    v.query.new('ceph_daemon')
    + v.query.withDatasourceFromVariable(self.datasource)
    + v.query.queryTypes.withLabelValues('ceph_daemon', 'plumbline:osd:info{cluster=~"$cluster"}')
    + v.query.generalOptions.withLabel('OSD')
    + v.query.selectionOptions.withIncludeAll(false)
    + v.query.selectionOptions.withMulti(true)
    + v.query.refresh.onTime()
    + v.query.withSort(3),

  local all(name, label, title, metric) =
    v.query.new(name)
    + v.query.withDatasourceFromVariable($.datasource)
    + v.query.queryTypes.withLabelValues(label, metric)
    + v.query.generalOptions.withLabel(title)
    + v.query.selectionOptions.withIncludeAll(true, '.*')
    + v.query.selectionOptions.withMulti(true)
    + v.query.refresh.onTime()
    + v.query.withSort(1),

  device_class: all('device_class', 'device_class', 'Device class', 'plumbline:osd:info{cluster=~"$cluster"}'),
  pool: all('pool', 'pool', 'Pool', 'plumbline:pool:info{cluster=~"$cluster"}'),
  vantage: all('vantage', 'vantage', 'Vantage', 'plumbline_probe_info{cluster=~"$cluster"}'),
}
