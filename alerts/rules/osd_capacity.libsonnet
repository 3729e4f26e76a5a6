// The capacity that mClock assumes for an OSD, against what a bench measured.
local osds = import '../lib/osd.libsonnet';

{
  local config = $._config,
  local labels = config.osd + osds.labels(config) {
    minimumCapacities: config.alerts.PlumblineOsdCapacityMisjudged.minimumOsds,
  },

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-osd-capacity.rules',
      interval: config.paces.compared,
      rules: [
        {
          // What mClock takes an OSD for: of the two settings the one of its own device.
          record: 'plumbline:osd_capacity:iops',
          expr: |||
            max by (%(ofClass)s) (plumbline_osd_mclock_capacity_iops)
            and on (%(ofClass)s)
            label_replace(plumbline:osd:info, "device_class", "ssd", "device_class", "nvme")
          ||| % labels,
        },
        {
          // By what a bench of this very OSD measured; else by what is usual for its class.
          record: 'plumbline:osd_capacity:ratio',
          expr: |||
            plumbline:osd_capacity:iops
            / on (%(osd)s) group_left ()
            (
              avg by (%(osd)s) (
                label_replace(
                  plumbline_probe_iops{workload=~"%(capacityWorkload)s"},
                  "ceph_daemon", "$1", "probe", ".+/(osd[.].+)"
                )
              )
              > 0
            )
            or on (%(osd)s)
            plumbline:osd_capacity:iops
            / on (%(class)s) group_left ()
            (
              quantile by (%(class)s) (0.5, plumbline:osd_capacity:iops) > 0
              and on (%(class)s)
              count by (%(class)s) (plumbline:osd_capacity:iops) >= %(minimumCapacities)d
            )
          ||| % labels,
        },
      ],
    }],
  },
}
