// The alerts that fire and how long they have: seconds, one series an alert of a node. `sel`: matchers on the alerts.
function(sel) |||
  max by (severity, alertname, layer, cluster, instance) (
    (time() - ALERTS_FOR_STATE{alertname=~"Plumbline.+", alertname!="PlumblineWatchdog", %(sel)s})
    and ignoring (alertstate)
    ALERTS{alertname=~"Plumbline.+", alertname!="PlumblineWatchdog", alertstate="firing", %(sel)s}
  )
||| % { sel: sel }
