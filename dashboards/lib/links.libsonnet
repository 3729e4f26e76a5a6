// Where a click leads: to another page with the time range, the data source and what the click was on.
// In a field's value `${__data.fields.X}` is the row's column X of a table (by the label's name, also where the heading
// says something else; not a column that was left out), `${__field.labels.X}` the label X of a series. One that the data
// has not is empty: `cluster=~""` matches what has no such label.
local pages = import 'pages.libsonnet';

local kept = ['${datasource:queryparam}', '${__url_time_range}'];
// What the page itself shows goes along as Grafana writes it: "all" stays "all".
local parameter(name, value) =
  if value == '${%s}' % name then '${%s:queryparam}' % name else 'var-%s=%s' % [name, value];
local url(page, variables) =
  '/d/%s?%s' % [pages[page].uid, std.join('&', kept + [parameter(name, variables[name]) for name in std.objectFields(variables)])];
// The page's own choice goes along, where the click itself says nothing else.
local withCluster(variables, value) = { cluster: value } + variables;

{
  // `variables`: name → text with Grafana's placeholders; `cluster` is what the page shows unless it is said.
  to(page, variables={}):: {
    title: 'Open %s' % pages[page].short,
    url: url(page, withCluster(variables, '${cluster}')),
    targetBlank: false,
  },

  // From a row of a table: the columns named here go along under their own names.
  fromRow(page, columns):: self.to(page, { [name]: '${__data.fields.%s:percentencode}' % name for name in columns }),

  // From a line of a graph: its labels named here go along.
  fromSeries(page, labels):: self.to(page, { [name]: '${__field.labels.%s:percentencode}' % name for name in labels }),
}
