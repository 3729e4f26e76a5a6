// The only place that names the Grafonnet version; pinned by commit in jsonnetfile.lock.json.
import 'github.com/grafana/grafonnet/gen/grafonnet-v11.4.0/main.libsonnet'
