"""Tables and links resolved as Grafana does it, from literal query results."""

import pytest

from support import grafana_frames
from support.grafana_links import ALL, Click, Grafana, resolve

MATRIX = [
    {"id": "groupingToMatrix",
     "options": {"rowField": "cluster", "columnField": "layer", "valueField": "Value", "emptyValue": "null"}},
    {"id": "organize",
     "options": {"indexByName": {"cluster\\layer": 0, "disk": 1, "osd": 2},
                 "renameByName": {"cluster\\layer": "cluster"}}},
]  # fmt: skip
RANGE = ("now-1h", "now")


def frame(*series, ref_id="A", alone=True):
    return grafana_frames.of_query(list(series), ref_id=ref_id, alone=alone)


def test_a_lone_query_has_a_value_and_several_have_letters():
    assert [each.name for each in frame(({"b": "1", "a": "2"}, 3.0)).columns] == ["Time", "a", "b", "Value"]
    assert frame(({}, 3.0), ref_id="B", alone=False).columns[-1].name == "Value #B"


def test_a_matrix_leaves_empty_what_is_not_there():
    shown = grafana_frames.transformed(
        [
            frame(
                ({"cluster": "n", "layer": "osd"}, 2.0),
                ({"cluster": "n", "layer": "disk"}, 1.0),
                ({"cluster": "s", "layer": "osd"}, 3.0),
            )
        ],
        MATRIX,
    )
    assert shown.rows() == [{"cluster": "n", "disk": 1.0, "osd": 2.0}, {"cluster": "s", "disk": None, "osd": 3.0}]
    assert shown.find("cluster") is shown.columns[0] is shown.find("0")


def test_a_matrix_without_its_label_stays_a_table():
    shown = grafana_frames.transformed([frame(({"layer": "osd"}, 2.0))], MATRIX)
    assert {each.heading for each in shown.columns} == {"Time", "layer", "Value"}


def test_rows_are_merged_wherever_they_agree():
    shown = grafana_frames.transformed(
        [
            frame(({"host": "a", "disk": "x"}, 1.0), ({"host": "a", "disk": "y"}, 2.0), ref_id="A", alone=False),
            frame(({"host": "a", "disk": "y"}, 5.0), ({"host": "b", "disk": "x"}, 6.0), ref_id="B", alone=False),
            frame(({"host": "a", "model": "M"}, 1.0), ref_id="C", alone=False),
        ],
        [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {"excludeByName": {"Time": True, "Value #C": True}, "renameByName": {"Value #A": "p99"}},
            },
        ],
    )
    assert shown.rows() == [
        {"disk": "x", "host": "a", "p99": 1.0, "Value #B": None, "model": "M"},
        {"disk": "y", "host": "a", "p99": 2.0, "Value #B": 5.0, "model": "M"},
        {"disk": "x", "host": "b", "p99": None, "Value #B": 6.0, "model": None},
    ]
    worst = grafana_frames.ordered(shown, [{"displayName": "p99", "desc": True}])
    assert [row["disk"] for row in worst.rows()] == ["y", "x", "x"]
    assert worst.rows()[-1]["p99"] is None


def test_placeholders_are_replaced_from_the_row_the_series_and_the_page():
    row = frame(({"instance": "a b:1", "device": "sda"}, 1.0))
    url = "/d/x?${ds:queryparam}&${__url_time_range}"
    url += "&var-i=${__data.fields.instance:percentencode}&var-c=${__data.fields.cluster}"
    assert resolve(url, Click(row), {"ds": "p"}, RANGE) == "/d/x?var-ds=p&from=now-1h&to=now&var-i=a%20b%3A1&var-c="
    assert resolve('${__data.fields["device"]}', Click(row), {}, RANGE) == "sda"
    assert resolve("${__field.labels.device}", Click(labels={"device": "sdb"}), {}, RANGE) == "sdb"


@pytest.mark.parametrize("text", ["${clutser}", "${__data.labels.x}", "${__value}", "${cluster:fancy}"])
def test_a_placeholder_that_grafana_does_not_know_is_an_error(text):
    with pytest.raises(LookupError):
        resolve(text, Click(), {"cluster": "n"}, RANGE)


def test_an_address_opens_a_page_with_its_variables():
    grafana = Grafana(query=lambda _: [], values=lambda query: {"b:1", "a:1"} if "instance" in query else {"sda"})
    page = grafana.open("/d/plumbline-disk?var-cluster=All&var-device=sdb")
    assert page.variables == {"datasource": "prometheus", "cluster": ALL, "instance": "a:1", "device": "sdb"}
    assert 'cluster=~".*", instance="a:1", device=~"sdb"' in page.expressions("p99")[0]
    with pytest.raises(AssertionError, match="no variables there"):
        grafana.open("/d/plumbline-disk?var-disk=sdb")
    with pytest.raises(KeyError):
        grafana.open("/d/plumbline-nothing")
