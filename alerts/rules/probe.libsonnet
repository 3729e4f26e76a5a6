// The age of periodic probes, in their own intervals: one number that fits a probe of ten minutes and one of a day.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),

  // A probe that never got there counts from the moment its configuration was loaded.
  local since(timestamp) = |||
    (
      time()
      -
      (
        max by (%(probe)s) (%(timestamp)s)
        or on (%(probe)s)
        0 * max by (%(probe)s) (plumbline_probe_interval_seconds)
        + on (%(instance)s) group_left ()
        max by (%(instance)s) (plumbline_config_last_reload_success_timestamp_seconds)
      )
    )
    / on (%(probe)s)
    max by (%(probe)s) (plumbline_probe_interval_seconds)
  ||| % (labels { timestamp: timestamp }),

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-probe.rules',
      rules: [
        {
          record: 'plumbline:probe_since_run:intervals',
          expr: since('plumbline_probe_last_run_timestamp_seconds'),
        },
        {
          record: 'plumbline:probe_since_success:intervals',
          expr: since('plumbline_probe_last_success_timestamp_seconds'),
        },
        {
          // Longer in flight than can be, with the layer that does not answer.
          record: 'plumbline:probe_stuck:seconds',
          expr: |||
            (
              max by (%(probe)s) (plumbline_probe_in_flight_seconds) > %(canarySeconds)d
              and on (%(probe)s)
              plumbline_probe_info{probe_type=~".*canary"}
              or
              max by (%(probe)s) (plumbline_probe_in_flight_seconds)
              > on (%(probe)s)
              (max by (%(probe)s) (plumbline_probe_timeout_seconds) + %(graceSeconds)d)
              or
              (
                max by (%(probe)s) (plumbline_probe_in_flight_seconds) > %(periodicSeconds)d
                unless on (%(probe)s)
                plumbline_probe_timeout_seconds
              )
            )
          ||| % (labels + config.alerts.PlumblineProbeStuck) + promql.withLayer(config),
        },
      ],
    }],
  },
}
