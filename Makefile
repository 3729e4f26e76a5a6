# Plumbline. `make` alone prints the daily targets, `make help-all` all of them.
# A comment after a target is its line of help: ## daily, #: the others.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
TEST_VENV := .venv-test
LOCK_VENV := .venv-lock
AUDIT_VENV := .venv-audit
ANSIBLE_VENV := .venv-ansible
STATE := .run
THANOS ?= thanos
ARGS ?=
# The Debian release that packages are built for and hosts of tests have.
export SUITE ?= bookworm
# More processes than CPUs: most tests wait. On two CPUs `make test` takes a tenth less with six than with four; tests
# with clusters or times of their own get fewer. Which may run beside each other, in which order: tests/conftest.py.
LANES := --dist loadfile --no-loadscope-reorder -n
# Seconds for a test that sets none itself: one that hangs fails, and the others are run.
BOUND := --timeout 900

# Stamps carry a key of this directory and interpreter: a moved checkout or another python3 installs anew.
KEY := $(shell { pwd; readlink -f "$$(command -v $(PYTHON))"; } 2>/dev/null | cksum | cut -d' ' -f1)
# Directories too: their times change when a file is removed.
SOURCES := pyproject.toml hatch_build.py README.md $(shell find exporter -name __pycache__ -prune -o -name '*.bpf.o' -o -print) $(wildcard alerts/runbooks/*.md)
PIP_INSTALL := -m pip install --quiet --require-hashes
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Demos and tests measure the disk of their temporary directory, and Debian 13 keeps /tmp in memory.
export TMPDIR ?= $(if $(filter tmpfs,$(shell stat -f -c %T /tmp)),/var/tmp,/tmp)
# Without its cache pytest rewrites every test module anew, in each of its processes: ten seconds of a CPU each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help help-all
help:
	@$(call LISTED,\#\#)
	@echo
	@echo "  make help-all prints the others. ARGS='…' passes flags on: make test ARGS='-k softnet'"

help-all:
	@$(call LISTED,\#[\#:])
	@sed -n 's/^MODULE_\([a-z-]*\) := .*#: \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | $(COLUMNS)

COLUMNS := awk -F '\t' '{printf "  make %-17s %s\n", $$1, $$2}'
LISTED = sed -n 's/^\([a-z0-9-]*\):.*$(1) \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | $(COLUMNS)

##@ the daemon

.PHONY: run
run: $(VENV)/.installed-$(KEY) ## install into .venv and start the daemon (state in .run/)
	@exec $(VENV)/bin/plumbline serve --storage.path $(STATE) $(ARGS)

.PHONY: demo
demo: $(VENV)/.installed-$(KEY) demo-packages ## the daemon, a real Prometheus and Alertmanager on loopback; Ctrl-C stops all
	@exec $(VENV)/bin/python -m deploy.demo $(ARGS)

.PHONY: demo-slow
demo-slow: $(VENV)/.installed-$(KEY) demo-packages #: the same, then slow the probed disk and watch the alert fire and resolve
	@exec $(VENV)/bin/python -m deploy.demo --slow $(ARGS)

# As root they are installed, otherwise named.
.PHONY: demo-packages
demo-packages:
	@requirements/need-debian prometheus prometheus-alertmanager fio || true

$(VENV)/.deps-$(KEY): requirements/run.txt requirements/s3.txt requirements/build.txt requirements/make-venv
	@echo "creating $(VENV) with the pinned dependencies" >&2
	@requirements/make-venv $(VENV) $(PYTHON)
	@$(VENV)/bin/python $(PIP_INSTALL) -r requirements/run.txt -r requirements/s3.txt -r requirements/build.txt
	@touch $@

$(VENV)/.installed-$(KEY): $(VENV)/.deps-$(KEY) $(SOURCES) requirements/debian-bpf.txt
	@requirements/need-debian -f requirements/debian-bpf.txt || echo "going on without: no disk latency histograms" >&2
	@echo "installing plumbline into $(VENV)" >&2
	@$(VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --no-index --force-reinstall .
	@touch $@

##@ tests and checks

# LONG=1: those of test-long, too, beside the others: they wait where the others compute, and all is collected once.
LONG ?=
.PHONY: test
test: debian-packages $(TEST_VENV)/.installed-$(KEY) check ## install what the tests need, check everything, run all tests but the long ones (LONG=1: them, too) and Ceph's
ifneq ($(LONG),)
	@$(TEST_VENV)/bin/python -m pytest $(LANES) 4 $(BOUND) -m "not ceph and not packages" $(ARGS)
else
	@$(TEST_VENV)/bin/python -m pytest $(LANES) 6 $(BOUND) -m "not ceph and not packages and not long" $(ARGS)
endif

.PHONY: quick
quick: $(TEST_VENV)/.installed-$(KEY) ## format, lint and the tests of what changed since main: under a minute (CONTRIBUTING.md)
	@requirements/need-debian prometheus || echo "going on without: no test of a rule" >&2
	@PYTHONPATH=tests:. $(TEST_VENV)/bin/python -m support.quick

.PHONY: test-long
test-long: debian-packages $(TEST_VENV)/.installed-$(KEY) #: run the tests that take long: soak, slow disks, recordings, faults
	@$(TEST_VENV)/bin/python -m pytest $(LANES) 3 $(BOUND) -o testpaths="tests/e2e tests/integration tests/rules tests/attack tests/unit/config/test_calendars.py" -m "long and not ceph and not packages" $(ARGS)

# With ARGS='-k …' one of the two may have nothing to do (pytest's 5).
CEPH_TESTS := -o testpaths=tests/integration $(BOUND)
SOME := $(if $(ARGS),|| [ $$? = 5 ])
# CEPH: a release, each on the Debian that has it, in a clone of what is committed; none: this machine's.
# SMOKE=1: the few tests that show whether a release works with us at all. Without root or a mirror they are left out, as
# 77 says: other tests, too, skip what a machine lacks.
SMOKE ?=
DEBIAN_OF_CEPH := 16:bookworm 18:trixie 20:forky
ITS_DEBIAN = $(or $(patsubst $(CEPH):%,%,$(filter $(CEPH):%,$(DEBIAN_OF_CEPH))),$(error CEPH is 16, 18 or 20))
# Debian 13's manager loads no module with Debian's bcrypt (docs/ceph.md): an older one in its place.
BEFORE_CEPH_18 := && .venv-test/bin/python $(PIP_INSTALL) --no-deps --upgrade --target /usr/lib/python3/dist-packages \
  -r requirements/ceph-18-bcrypt.txt
CEPH ?=
ifdef CEPH
.PHONY: test-ceph
test-ceph: $(TEST_VENV)/.installed-$(KEY) #: install Ceph, run the tests that need a real cluster; CEPH=16, 18 or 20: in a Debian of its own; SMOKE=1: a few
	@requirements/need-debian -f requirements/debian-hosts.txt || true
	@PYTHONPATH=tests $(TEST_VENV)/bin/python -m newcomer "$(ITS_DEBIAN)" \
	  'make debian-packages ceph-packages wheel $(BEFORE_CEPH_$(CEPH)) && exec make test-ceph CEPH= SMOKE=$(SMOKE) ARGS="$(subst ",\",$(ARGS))"' $(if $(SMOKE),|| [ $$? = 77 ])
else ifneq ($(SMOKE),)
.PHONY: test-ceph
test-ceph: ceph-packages $(TEST_VENV)/.installed-$(KEY)
	@$(TEST_VENV)/bin/python -m pytest $(CEPH_TESTS) -m smoke $(ARGS)
else
.PHONY: test-ceph test-ceph-calm test-ceph-lanes
test-ceph: test-ceph-calm test-ceph-lanes

test-ceph-calm: ceph-packages $(TEST_VENV)/.installed-$(KEY) #: of test-ceph what measures latencies, one by one: nothing else may run beside it
	@$(TEST_VENV)/bin/python -m pytest $(CEPH_TESTS) -m "ceph and calm" $(ARGS) $(SOME)

test-ceph-lanes: ceph-packages $(TEST_VENV)/.installed-$(KEY) #: of test-ceph the rest, each process with a cluster of its own
	@$(TEST_VENV)/bin/python -m pytest $(LANES) 4 $(CEPH_TESTS) -m "ceph and not calm" $(ARGS) $(SOME)
endif

# The bases of the hosts are made once and kept in .debian/; make test-packages has the same.
.PHONY: test-ansible
test-ansible: $(TEST_VENV)/.installed-$(KEY) $(ANSIBLE_VENV)/.deps-$(KEY) #: deploy/ansible on a Debian with systemd and in a chroot: SUITE=bookworm or trixie (root; half an hour)
	@PLUMBLINE_ANSIBLE=$(ANSIBLE_VENV)/bin $(TEST_VENV)/bin/python -m pytest -s -v tests/deploy/test_ansible.py $(ARGS)

$(ANSIBLE_VENV)/.deps-$(KEY): requirements/ansible.txt requirements/debian-hosts.txt requirements/make-venv
	@requirements/need-debian -f requirements/debian-hosts.txt || true
	@echo "creating $(ANSIBLE_VENV) with the pinned Ansible" >&2
	@requirements/make-venv $(ANSIBLE_VENV) $(PYTHON)
	@$(ANSIBLE_VENV)/bin/python $(PIP_INSTALL) -r requirements/ansible.txt
	@touch $@

# The same tests as ever, with other programs first in PATH. The base they are from is kept in .debian/, too.
PROMETHEUS3_TESTS := tests/rules tests/dashboards/test_queries.py tests/deploy tests/golden/test_exposition_golden.py \
  tests/integration/test_stack.py tests/integration/test_alertmanager_real.py tests/integration/test_keeplist.py \
  tests/integration/test_guarded_prometheus.py tests/integration/test_dashboards_live.py \
  tests/integration/test_native_histograms.py tests/integration/test_notifications.py \
  tests/integration/test_hostile_notifications.py
.PHONY: test-prometheus3
test-prometheus3: $(TEST_VENV)/.installed-$(KEY) #: rules, routes and queries with Debian 14's Prometheus 3 and Alertmanager (root; every panel's query: Ceph)
	@requirements/need-debian -f requirements/debian-hosts.txt || true
	@programs=$$(PYTHONPATH=tests $(TEST_VENV)/bin/python -m support.prometheus3) && \
	  PATH="$$programs:$$PATH" $(TEST_VENV)/bin/python -m pytest $(LANES) 3 $(BOUND) $(PROMETHEUS3_TESTS) $(ARGS)

# VictoriaMetrics' rule tester is built at the first run and kept in .debian/: Go, and minutes of it.
.PHONY: test-victoria
test-victoria: $(TEST_VENV)/.installed-$(KEY) #: the rules' tests in VictoriaMetrics' rule tester; what differs is known (Go; six minutes)
	@program=$$(PYTHONPATH=tests $(TEST_VENV)/bin/python -m support.victoria) && \
	  PLUMBLINE_VMALERT_TOOL="$$program" $(TEST_VENV)/bin/python -m pytest tests/rules/test_victoria.py $(ARGS)

# The base of the image, what is built of it and Kubernetes' programs are kept in .debian/.
.PHONY: test-platforms
test-platforms: $(TEST_VENV)/.installed-$(KEY) #: the pages of container, compose, cephadm and Kubernetes, as they say (root, Go; half an hour, the first time an hour more); CEPH=18: cephadm's with it
	@requirements/need-debian -f requirements/debian-platforms.txt || true
	@PLUMBLINE_PLATFORMS=1 $(if $(CEPH),PLUMBLINE_CEPH=$(CEPH):$(ITS_DEBIAN)) \
	  $(TEST_VENV)/bin/python -m pytest -v $(if $(CEPH),tests/platforms/test_cephadm.py,tests/platforms) $(ARGS)

.PHONY: check
check: lint fresh

.PHONY: lint
lint: $(TEST_VENV)/.installed-$(KEY) ## ruff, codespell, mypy (strict) and the import contracts
	@$(TEST_VENV)/bin/ruff check --quiet .
	@$(TEST_VENV)/bin/ruff format --check --quiet . || { echo "not formatted; run: make fmt" >&2; exit 1; }
	@$(TEST_VENV)/bin/codespell
	@$(TEST_VENV)/bin/mypy --no-error-summary
	@$(TEST_VENV)/bin/lint-imports --no-cache >.import-lint.log || { cat .import-lint.log; rm .import-lint.log; exit 1; }
	@rm -f .import-lint.log

.PHONY: fmt
fmt: $(TEST_VENV)/.deps-$(KEY) ## format the code
	@$(TEST_VENV)/bin/ruff check --quiet --fix . || true
	@$(TEST_VENV)/bin/ruff format .

.PHONY: fresh
fresh: $(TEST_VENV)/.installed-$(KEY) #: are the committed rules and dashboards what their sources render to?
	@$(TEST_VENV)/bin/python render.py --check
	@PYTHONPATH=tests $(TEST_VENV)/bin/python docs/render.py --check
	@$(TEST_VENV)/bin/python deploy/prometheus/keeplist.py --check
	@$(TEST_VENV)/bin/python -m deploy.packages.completions --check

.PHONY: render
render: $(TEST_VENV)/.installed-$(KEY) grafonnet ## render alerts/ and dashboards/ into their out/ folders, and the pages of docs/ that are generated
	@$(TEST_VENV)/bin/python render.py
	@PYTHONPATH=tests $(TEST_VENV)/bin/python docs/render.py
	@$(TEST_VENV)/bin/python deploy/prometheus/keeplist.py
	@$(TEST_VENV)/bin/python -m deploy.packages.completions

.PHONY: grafonnet
grafonnet: #: fetch Grafonnet, which dashboards need, into dashboards/vendor; if that is impossible, one line says how else
	@$(PYTHON) -m requirements.grafonnet

.PHONY: site site-arguments
site: site-arguments $(TEST_VENV)/.deps-$(KEY) grafonnet #: rules and dashboards with your own numbers: SITE=site.libsonnet OUT=/etc/prometheus/plumbline
	@$(TEST_VENV)/bin/python render.py --site "$(SITE)" --out "$(OUT)"

site-arguments:
	@test -n "$(SITE)" -a -n "$(OUT)" || { echo "say which: make site SITE=site.libsonnet OUT=/etc/prometheus/plumbline" >&2; exit 2; }

.PHONY: preview
preview: $(TEST_VENV)/.deps-$(KEY) preview-packages #: draw the dashboards from a Prometheus with data, by Grafana's components: ARGS='--prometheus URL --out DIR'
	@PYTHONPATH=tests:. $(TEST_VENV)/bin/python -m preview $(ARGS)

.PHONY: preview-packages
preview-packages:
	@which chromium node npm >/dev/null || requirements/need-debian -f requirements/debian-preview.txt || true

# Apart from make test: 450 MB of npm's packages, kept in .tools/.
.PHONY: test-grafana
test-grafana: $(TEST_VENV)/.installed-$(KEY) preview-packages #: every page drawn by Grafana's own code over recorded answers, in Chromium (npm's registry the first time)
	@PLUMBLINE_GRAFANA=1 $(TEST_VENV)/bin/python -m pytest -v tests/dashboards/test_grafanas_code.py $(ARGS)

.PHONY: pictures
pictures: ceph-packages preview-packages $(TEST_VENV)/.installed-$(KEY) #: draw docs/pictures anew: a real Ceph with one slow OSD, a month of growth (root; 10 minutes)
	@PYTHONPATH=tests:. $(TEST_VENV)/bin/python -m pictures $(ARGS)

.PHONY: golden
golden: $(TEST_VENV)/.installed-$(KEY) #: rewrite the golden expositions from the fixtures and the titles of alerts from their tests (refused under CI)
	@[ -z "$${CI:-}" ] || { echo "golden files are rewritten by a person who reads the difference, never by CI" >&2; exit 1; }
	@requirements/need-debian prometheus # without promtool the titles would be skipped, and look written
	@PLUMBLINE_GOLDEN=write $(TEST_VENV)/bin/python -m pytest -q $(or $(ARGS),tests/golden tests/rules/test_titles.py)
	@git diff --stat -- tests/golden tests/rules/texts

# What measures is a module of tests/: MODULE_ has its name and what it is always called with.
MODULE_bench := bench #: scrape cost against node_exporter and the exposition against the stock one; prints ratios
MODULE_bench-web := bench.web #: what TLS and a password cost a scrape, compared with node_exporter and the same file
MODULE_bench-review := bench.review #: what plumbline report costs a Prometheus: 20 nodes for a month
MODULE_bench-detection := bench.detection_climates #: false alerts and delays of the canaries' verdicts in every climate (half an hour); ARGS=--check: against Prometheus
MODULE_bench-families := bench.detection_families #: the same for gateways, disks, OSDs and growth, by the rules in a real Prometheus (half an hour)
MODULE_bench-rivals := bench.detection --rivals #: the shipped verdicts and other designs in a real Prometheus, on synthetic histories
MODULE_bench-failslow := bench.failslow $(DATA) #: the shipped verdict about disks on public traces with labels; DATA=clone of Joshua-Ludolf/FSA-benchmarking-Reproduction-Research
MODULE_bench-queries := bench.queries #: panels and rules on 200 nodes with 2,000 OSDs, compared with node-mixin's and ceph-mixin's (long)
MODULE_soak := endurance.soak #: 50,000 scrapes with reloads: memory, descriptors, threads (15 minutes to an hour; ARGS='--scrapes N')
MODULE_kill-storm := endurance.kills #: SIGKILL to the daemon at 1,000 random moments: what is left? (15 minutes to an hour; ARGS='--kills N')
MODULE_load-storm := endurance.load #: a load on a disk that changes every few minutes: who is woken? (two and a half hours; ARGS='--minutes N'; root)
MODULE_scale-simulation := scale.simulation #: what a thousand storage hosts cost Prometheus, measured on fewer (ten minutes, 8 GB)
MODULE_scale-victoria := scale.victoria_cost #: what simulated hosts cost vmagent, VictoriaMetrics and vmalert (ten minutes; ARGS='--hosts 400'; Go)
MODULE_mutate-rules := rules.mutation #: small mistakes in every rule: which would no test notice? (long)
IN_soak := unshare --net
MEASURES := $(patsubst MODULE_%,%,$(filter MODULE_%,$(.VARIABLES)))

# They measure the daemon as it is installed: the tests' environment has packages that make it larger.
bench bench-web: $(VENV)/.installed-$(KEY)

.PHONY: $(MEASURES)
$(MEASURES): $(TEST_VENV)/.installed-$(KEY)
	@PYTHONPATH=tests:. $(IN_$@) $(TEST_VENV)/bin/python -m $(MODULE_$@) $(ARGS)

.PHONY: scale
scale: $(TEST_VENV)/.installed-$(KEY) #: Thanos and VictoriaMetrics give one Prometheus' verdicts: THANOS=/path/to/thanos (25 minutes) or VICTORIA=1 (32)
	@if [ -n "$(VICTORIA)" ]; then \
	  for name in victoria-metrics vmagent vmalert; do \
	    program=$$(PYTHONPATH=tests $(TEST_VENV)/bin/python -m support.victoria $$name) || exit 1; done; \
	  PLUMBLINE_VICTORIA="$${program%/*}" $(TEST_VENV)/bin/python -m pytest -s tests/scale/test_victoria.py $(ARGS); \
	else \
	  command -v "$(THANOS)" >/dev/null || { echo "no $(THANOS): make scale THANOS=/path/to/thanos (docs/scale.md)" >&2; exit 1; }; \
	  PLUMBLINE_THANOS="$(THANOS)" $(TEST_VENV)/bin/python -m pytest -s tests/scale/test_thanos.py $(ARGS); fi

.PHONY: prove-rules
prove-rules: $(TEST_VENV)/.installed-$(KEY) #: every alert quiet just below its threshold and on a transient, proven by changing it (minutes)
	@PLUMBLINE_PROVE_RULES=1 $(TEST_VENV)/bin/python -m pytest -q tests/rules/test_coverage.py $(ARGS)

.PHONY: bpf
bpf: $(TEST_VENV)/.deps-$(KEY) #: compile the BPF program in place, for runs from the source tree
	@$(TEST_VENV)/bin/python hatch_build.py

# What is still missing afterwards was named; those tests skip and say why.
.PHONY: debian-packages
debian-packages:
	@requirements/need-debian -f requirements/debian-test.txt || true
	@requirements/need-debian -f requirements/debian-bpf.txt || true

.PHONY: ceph-packages
ceph-packages:
	@requirements/need-debian -f requirements/debian-ceph.txt || true

$(TEST_VENV)/.deps-$(KEY): requirements/run.txt requirements/s3.txt requirements/build.txt requirements/dev.txt requirements/make-venv
	@echo "creating $(TEST_VENV) with the pinned test dependencies" >&2
	@requirements/make-venv $(TEST_VENV) $(PYTHON)
	@$(TEST_VENV)/bin/python $(PIP_INSTALL) -r requirements/run.txt -r requirements/s3.txt -r requirements/build.txt -r requirements/dev.txt
	@touch $@

# The built wheel is what the tests import and run, never the source tree.
$(TEST_VENV)/.installed-$(KEY): $(TEST_VENV)/.deps-$(KEY) $(SOURCES)
	@rm -f dist/*.whl
	@requirements/need-debian -f requirements/debian-bpf.txt || true
	@export PLUMBLINE_REQUIRE_BPF=1; \
	  $(TEST_VENV)/bin/hatchling build --target wheel >/dev/null 2>&1 || $(TEST_VENV)/bin/hatchling build --target wheel
	@$(TEST_VENV)/bin/python -m pip install --quiet --no-deps --no-index --force-reinstall dist/*.whl
	@touch $@

##@ releases

.PHONY: wheel
wheel: $(TEST_VENV)/.installed-$(KEY) #: build the wheel into dist/
	@ls dist/*.whl

.PHONY: packages
packages: $(VENV)/.deps-$(KEY) $(SOURCES) #: build the wheel, the Debian package (SUITE=bookworm or trixie) and the RPM into dist/, the same bytes each time
	@requirements/need-debian -f requirements/debian-bpf.txt || true
	@requirements/need-debian -f requirements/debian-release.txt || true
	@rm -f dist/plumbline_*.deb dist/plumbline-*.rpm
	@$(VENV)/bin/python -m deploy.packages --suite $(SUITE)

.PHONY: chart
chart: $(TEST_VENV)/.deps-$(KEY) #: write the Helm chart into dist/chart/plumbline
	@$(TEST_VENV)/bin/python -m deploy.kubernetes.chart

.PHONY: bundle
bundle: $(TEST_VENV)/.deps-$(KEY) grafonnet #: rules and dashboards as jsonnet with their libraries, and what renders them: dist/plumbline-mixin-VERSION.tar.gz
	@$(TEST_VENV)/bin/python -m deploy.release.bundle

SIGNING_KEY ?=
.PHONY: release release-arguments
release: release-arguments $(TEST_VENV)/.deps-$(KEY) #: all of the above of this commit, summed and signed, into dist/release/: SIGNING_KEY=FILE
	@requirements/need-debian -f requirements/debian-bpf.txt || true
	@requirements/need-debian -f requirements/debian-release.txt || true
	@$(TEST_VENV)/bin/python -m deploy.release --key "$(SIGNING_KEY)" $(ARGS)

release-arguments:
	@test -n "$(SIGNING_KEY)" || { echo "say with which key: make release SIGNING_KEY=FILE (ssh-keygen -t ed25519 -f FILE)" >&2; exit 2; }

RELEASE ?= dist/release
.PHONY: verify-release
verify-release: #: is each file of a release as it was signed? RELEASE=dist/release ALLOWED=allowed_signers
	@test -n "$(ALLOWED)" || { echo "say whose: make verify-release RELEASE=$(RELEASE) ALLOWED=allowed_signers" >&2; exit 2; }
	@deploy/release/verify "$(ALLOWED)" "$(RELEASE)"

.PHONY: test-packages
test-packages: packages $(TEST_VENV)/.deps-$(KEY) #: install them on a fresh Debian (SUITE=bookworm or trixie; root, debootstrap, systemd in namespaces), remove, purge
	@requirements/need-debian -f requirements/debian-hosts.txt || true
	@$(TEST_VENV)/bin/python -m pip install --quiet --no-deps --no-index --force-reinstall dist/*.whl
	@$(TEST_VENV)/bin/python -m pytest -m packages tests/packages $(ARGS)

# What is committed, on a root with nothing of ours. Its tree and logs of the last run stay in .debian/.
.PHONY: test-newcomer
test-newcomer: $(TEST_VENV)/.installed-$(KEY) #: make run, test and demo-slow on a bare Debian: SUITE=bookworm or trixie (root; half an hour)
	@requirements/need-debian -f requirements/debian-hosts.txt || true
	@$(TEST_VENV)/bin/python -m pytest -s -v tests/newcomer $(ARGS)

# QEMU and the guests' trees are made at the first run and kept in .debian/, some 1 GB for each release.
.PHONY: lab
lab: $(TEST_VENV)/.installed-$(KEY) #: the daemon in a virtual machine, beside the kernel's own tools: writes docs/lab.md; ARGS='--suite forky --only nvme,bond'; ARGS=--cluster: three hosts, faults, notifications (root)
	@requirements/need-debian -f requirements/debian-hosts.txt || true
	@requirements/need-debian e2fsprogs || true
	@requirements/need-debian -f requirements/debian-bpf.txt || true
	@requirements/need-debian -f requirements/debian-platforms.txt || true
	@case "$(ARGS)" in *--cluster*) requirements/need-debian -f requirements/debian-ceph.txt || true;; esac
	@PYTHONPATH=tests:. PLUMBLINE_TESTS_WAIT_S=300 $(TEST_VENV)/bin/python -m lab $(ARGS)

# make lock UPGRADE= keeps the pins and only adds what is missing.
UPGRADE ?= --upgrade
PIP_COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(LOCK_VENV)/bin/pip-compile --quiet --generate-hashes --allow-unsafe \
  --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options $(UPGRADE)

.PHONY: lock
lock: $(LOCK_VENV)/.deps-$(KEY) #: resolve the dependencies anew and pin them with hashes
	@$(PIP_COMPILE) -o requirements/run.txt pyproject.toml
	@$(PIP_COMPILE) --extra s3 -c requirements/run.txt -o requirements/s3.txt pyproject.toml
	@$(PIP_COMPILE) -o requirements/build.txt requirements/build.in
	@$(PIP_COMPILE) -o requirements/dev.txt requirements/dev.in
	@$(PIP_COMPILE) -o requirements/audit.txt requirements/audit.in
	@$(PIP_COMPILE) -o requirements/ansible.txt requirements/ansible.in
	@$(PIP_COMPILE) -o requirements/lock.txt requirements/lock.in
	@git diff --stat -- requirements

# The licences are those of what is installed: so the shipped dependencies are installed there, too.
.PHONY: audit
audit: $(AUDIT_VENV)/.deps-$(KEY) #: pins, hashes, licences; then asks what is known against the dependencies (internet)
	@$(AUDIT_VENV)/bin/python -m requirements.audit $(ARGS)

.PHONY: sbom
sbom: $(TEST_VENV)/.installed-$(KEY) #: what the daemon is made of, as CycloneDX: dist/sbom.cdx.json
	@$(TEST_VENV)/bin/python -m requirements.sbom dist/plumbline-*.whl dist/sbom.cdx.json

$(AUDIT_VENV)/.deps-$(KEY): requirements/run.txt requirements/s3.txt requirements/audit.txt requirements/make-venv
	@requirements/make-venv $(AUDIT_VENV) $(PYTHON)
	@$(AUDIT_VENV)/bin/python $(PIP_INSTALL) -r requirements/run.txt -r requirements/s3.txt -r requirements/audit.txt
	@touch $@

$(LOCK_VENV)/.deps-$(KEY): requirements/lock.txt requirements/make-venv
	@requirements/make-venv $(LOCK_VENV) $(PYTHON)
	@$(LOCK_VENV)/bin/python $(PIP_INSTALL) -r requirements/lock.txt
	@touch $@

.PHONY: clean
clean: ## remove what make made: environments, wheel, caches, state of run and demo
	@rm -rf $(VENV) $(TEST_VENV) $(LOCK_VENV) $(AUDIT_VENV) $(ANSIBLE_VENV) $(STATE) .debian .demo dist build \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .import-lint.log .tools
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
