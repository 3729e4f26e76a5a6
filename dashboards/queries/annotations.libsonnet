// What every page marks in its graphs. Placeholders are the variables every page has; `more` and
// `ofBaselines` narrow to what it shows.
local matchers = import '../lib/matchers.libsonnet';

function(more='', ofBaselines=more) {
  local narrowed(by) = matchers.join(['cluster=~"$cluster"', by]),
  local sel = narrowed(more),

  alerts: 'ALERTS{alertname=~"Plumbline.+", alertname!="PlumblineWatchdog", alertstate="firing", severity!="info", %s}' % sel,
  recovery: 'max by (cluster) (plumbline:recovery:bool{cluster=~"$cluster"}) > 0',
  maintenance: 'plumbline:maintenance_until:seconds{cluster=~"$cluster"} > time()',
  // Milliseconds: the moment it was measured, whenever that was.
  baselines: 'max by (cluster, instance, layer, device_class, source) (plumbline_baseline_measured_timestamp_seconds{%s}) * 1000' % narrowed(ofBaselines),
  // A version that nobody ran a few minutes ago: ours, and Ceph's.
  upgrades: |||
    label_replace(
      count by (cluster, version) (plumbline_build_info{cluster=~"$cluster"})
      unless on (cluster, version)
      count by (cluster, version) (plumbline_build_info{cluster=~"$cluster"} offset 10m),
      "what", "Plumbline", "", ""
    )
    or
    label_replace(
      label_replace(
        count by (cluster, ceph_version) (ceph_osd_metadata{cluster=~"$cluster"})
        unless on (cluster, ceph_version)
        count by (cluster, ceph_version) (ceph_osd_metadata{cluster=~"$cluster"} offset 10m),
        "version", "$1", "ceph_version", "(.+)"
      ),
      "what", "Ceph", "", ""
    )
  |||,
}
