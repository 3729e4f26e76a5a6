// The queries of the network page. A frame that is counted on a VLAN, its bond and the port counts once, for the port.
function(config)
  local matchers = import '../lib/matchers.libsonnet';
  local proof = import '../lib/proof.libsonnet';

  local sel = matchers.selector('cluster=~"$cluster"');
  local notLoopback = 'device!="lo"';
  local rate(metric, more='') = 'rate(%s%s[$__rate_interval])' % [metric, sel(more)];
  local port = 'cluster, instance, device';
  // Not on what stands on another port of ours. As it is at the end of the range: then Prometheus looks once, and not for
  // every point of a graph.
  local above = |||
    (
      plumbline_nic_relation_info%(sel)s @ end()
      and on (cluster, instance, lower)
      label_replace(plumbline_nic_mtu_bytes%(sel)s @ end(), "lower", "$1", "device", "(.+)")
    )
  ||| % { sel: sel() };
  local lowest(expr) = '(%s unless on (%s) %s)' % [expr, port, std.rstripChars(above, '\n')];
  local summed(expr) = 'sum by (%s) (%s)' % [port, expr];
  local perPort(expr) = lowest(summed(expr));

  local dropsOf(causes) = rate('plumbline_nic_drops_total', notLoopback + ', cause=~"%s"' % causes);
  local errorsOf = rate('plumbline_nic_errors_total', notLoopback);
  local drops(causes) = perPort(dropsOf(causes));
  local errors = perPort(errorsOf);
  // What nobody wanted (`filter`) is no loss. Left to the lowest ports by who uses it, and once: that is what costs.
  local lost = 'sum by (%s) (%s or %s)' % [
    port,
    'label_replace(%s, "of", "drops", "", "")' % summed(dropsOf('ring|fifo|other')),
    'label_replace(%s, "of", "errors", "", "")' % summed(errorsOf),
  ];
  local share(of) = lowest('%s / (%s > 0)' % [of, summed(rate('plumbline_nic_packets_total', notLoopback))]);
  local worst = 20;
  local ofTheWorst(expr) = '%s and on (%s) topk(%d, %s)' % [expr, port, worst, lowest(lost)];

  local speedShare = lowest('max by (%(port)s) (plumbline_nic_speed_bytes_per_second%(sel)s) / max by (%(port)s) (plumbline_nic_speed_max_bytes_per_second%(sel)s)' % { port: port, sel: sel() });
  local ringShare = 'max by (%(port)s) (plumbline_nic_ring_entries%(sel)s) / max by (%(port)s) (plumbline_nic_ring_entries_max%(sel)s)' % { port: port, sel: sel('ring="receive"') };
  local irqShare = '(max by (%s) (plumbline_nic_irq_share_max_ratio%s) and on (%s) plumbline_nic_irq_active_vectors%s > 1)' % [port, sel(), port, sel()];
  local use = lowest('max by (%(port)s) (%(bytes)s) / on (%(port)s) max by (%(port)s) (plumbline_nic_speed_bytes_per_second%(sel)s)' % { port: port, bytes: rate('plumbline_nic_bytes_total', notLoopback), sel: sel() });
  local retransmitted = 'sum by (cluster, instance) (%s) / (sum by (cluster, instance) (%s) > 0)' % [
    rate('plumbline_tcp_segments_retransmitted_total'),
    rate('plumbline_tcp_segments_total', 'direction="transmit"'),
  ];
  local mtus = 'count_values by (cluster, role) ("mtu", plumbline:nic_role_mtu:bytes%s)' % sel();

  // What was measured the same way to whomever, and what of the baselines belongs to it.
  local likeness = 'device_class, workload, operation';
  local networkOnly(more='') = sel(matchers.join(['layer="network"', more]));
  local figures(measured, baseline, documented, more='', documentedMore=more) = {
    worst(aggregation):: '%s by (cluster, %s) (%s%s)' % [aggregation, likeness, measured, networkOnly(more)],
    median: 'quantile by (cluster, %s) (0.5, %s%s)' % [likeness, measured, networkOnly(more)],
    baseline: 'quantile by (cluster, %s, source) (0.5, %s%s)' % [likeness, baseline, networkOnly(more)],
    documented: 'max by (%s, profile%s) (%s%s) and on (workload, operation) %s%s'
                % [likeness, if more == '' then '' else ', statistic', documented, networkOnly(matchers.join(['source="documented"', documentedMore])), measured, networkOnly(more)],
  };

  {
    verdict: {
      degradation: 'max(plumbline:degradation:ratio%s)' % networkOnly(),
      loss: 'max(%s)' % share(summed(dropsOf('ring|fifo'))),
      errors: 'max(%s)' % share(summed(errorsOf)),
      retransmitted: 'max(%s)' % retransmitted,
      slowLinks: proof.counted('%s < 1' % speedShare, of='plumbline_nic_up' + sel()),
      mtus: proof.counted('count by (cluster, role) (%s) > 1' % mtus),
      alerts: proof.counted('ALERTS' + sel('alertname=~"Plumbline.+", layer="network", alertstate="firing", severity!="info"')),
    },
    worst: {
      count: worst,
      share: ofTheWorst(share(lost)),
      ring: ofTheWorst(drops('ring')),
      fifo: ofTheWorst(drops('fifo')),
      other: ofTheWorst(drops('other')),
      errors: ofTheWorst(errors),
      pause: ofTheWorst(perPort(rate('plumbline_nic_pause_frames_total'))),
      speed: ofTheWorst(speedShare),
      ringSize: ofTheWorst(ringShare),
      irq: ofTheWorst(irqShare),
      use: ofTheWorst(use),
    },
    loss: {
      byCause: 'sum by (cause) (%s)' % lowest(rate('plumbline_nic_drops_total', notLoopback)),
      errors: 'sum by (cause) (%s)' % lowest(rate('plumbline_nic_errors_total', notLoopback)),
      byPort: 'topk(10, plumbline:nic_lost_frames:ratio%s) > 0' % sel(),
      pause: 'topk(10, sum by (%s, direction) (%s)) > 0' % [port, lowest(rate('plumbline_nic_pause_frames_total'))],
      backlog: 'topk(10, sum by (cluster, instance) (%s)) > 0' % rate('plumbline_softnet_packets_dropped_total'),
      squeeze: 'topk(10, max by (cluster, instance) (%s)) > 0' % rate('plumbline_softnet_time_squeezes_total'),
      retransmitted: 'topk(10, %s)' % retransmitted,
      listen: 'topk(10, sum by (cluster, instance) (%s)) > 0' % rate('plumbline_tcp_listen_overflows_total'),
    },
    settings: {
      speed: speedShare + ' < 1',
      // Too small only where it hurts, as the alert has it.
      ring: '%s < %g and on (%s) %s > 0' % [ringShare, config.alerts.PlumblineNicRingSmall.belowShare, port, drops('ring')],
      irq: '%s > %g' % [irqShare, config.alerts.PlumblineNicIrqsOnOneCpu.share],
      halfDuplex: 'max by (%s) (plumbline_nic_full_duplex%s) == 0' % [port, sel()],
      mtus: mtus,
    },
    bond: {
      local slave = 'cluster, instance, device, slave',
      down: 'max by (%s) (plumbline_bond_slave_up%s) == 0' % [slave, sel()],
      elsewhere: '(max by (%(slave)s) (plumbline_bond_slave_aggregator_id%(sel)s) != on (cluster, instance, device) group_left () max by (cluster, instance, device) (plumbline_bond_aggregator_id%(sel)s)) * 0 + 1' % { slave: slave, sel: sel() },
      noPartner: '1 - max by (%s) (plumbline_bond_slave_partner_mac_valid%s) == 1' % [slave, sel()],
    },
    infiniband: {
      local ibPort = 'cluster, instance, device, port',
      state: 'max by (%s) (plumbline_infiniband_port_state%s)' % [ibPort, sel()],
      rate: 'max by (%s) (plumbline_infiniband_rate_bytes_per_second%s) * 8' % [ibPort, sel()],
      use: 'max by (%s) (%s) / max by (%s) (plumbline_infiniband_rate_bytes_per_second%s > 0)' % [ibPort, rate('plumbline_infiniband_bytes_total'), ibPort, sel()],
      errors: 'sum by (%s) (%s)' % [ibPort, rate('plumbline_infiniband_errors_total', 'error!~"%s"' % config.alerts.PlumblineInfinibandErrors.benign)],
      waits: 'sum by (%s) (%s)' % [ibPort, rate('plumbline_infiniband_transmit_waits_total')],
    },
    probe: {
      throughput: figures('plumbline_probe_throughput_bytes_per_second', 'plumbline:baseline_in_force:throughput_bytes_per_second', 'plumbline_baseline_throughput_bytes_per_second'),
      // Documents mostly give a mean, and it is better than nothing.
      roundTrip: figures(
        'plumbline_probe_latency_seconds',
        'plumbline:baseline_in_force:latency_seconds',
        'plumbline_baseline_latency_seconds',
        'statistic="$statistic"',
        'statistic=~"$statistic|mean"'
      ),
      // To whom, and by which port of the node.
      local targets = 'max by (cluster, instance, probe, target, device) (plumbline_probe_target_info%s)' % sel(),
      local towards(metric) = 'max by (cluster, instance, probe) (%s%s) * on (cluster, instance, probe) group_left (target, device) %s' % [metric, sel('layer="network"'), targets],
      pathMtu: towards('plumbline_probe_path_mtu_bytes'),
      interfaceMtu: |||
        (%(targets)s and on (cluster, instance, probe) plumbline_probe_path_mtu_bytes%(sel)s)
        * on (cluster, instance, device) group_left ()
        max by (cluster, instance, device) (plumbline_nic_mtu_bytes%(sel)s)
      ||| % { targets: targets, sel: sel() },
      loss: towards('plumbline_probe_loss_ratio'),
      retransmits: towards('plumbline_probe_retransmits'),
    },
    load: { use: 'topk(10, %s)' % use },
  }
