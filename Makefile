# Everything a person does here, by name. `make help` lists it.
GO        ?= go
# The race detector needs cgo and with it a C compiler; without one the tests run all the same.
RACE      := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
FUZZTIME  ?= 60s
BENCH     ?= .
COUNT     ?= 1
# Tools are built from a module of their own, and never enter the product's.
TOOL      := $(GO) tool -modfile=test/tools/lint/go.mod

.DEFAULT_GOAL := help
.PHONY: help build image binaries test e2e peers browser install-test scale generate verify fmt lint bench golden fuzz cluster cluster-down

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/plimsoll
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/plimsoll ./cmd/plimsoll

# A registry of yours, and PUSH=1, to push as well.
IMAGE     ?= ghcr.io/plimsoll-dev/plimsoll:dev
PLATFORMS ?= linux/amd64,linux/arm64

image: ## bin/plimsoll-image.tar, without a container engine; IMAGE=name PLATFORMS=list PUSH=1
	$(GO) run ./build/cmd/image --name $(IMAGE) --platforms $(PLATFORMS) --output bin/plimsoll-image.tar $(if $(PUSH),--push)

binaries: ## the servers that tests run, built from pinned modules (20 CPU-minutes, once a version)
	$(GO) run ./test/binaries/cmd/build

test: ## unit tests, and tests against real servers that Go alone can build
	$(GO) run ./test/binaries/cmd/build etcd kube-apiserver prometheus promtool
	$(GO) test $(RACE) -shuffle=on ./...

e2e: binaries ## tests against a real kubelet (root; installs runc, iptables and CNI plugins where missing)
	test/cluster/install.sh
	$(GO) test -p 1 -tags e2e -count=1 -timeout 40m ./test/cluster/... ./test/e2e/...
	cd test/install && $(GO) test -tags e2e -count=1 -timeout 40m -run TestImageRunsUnderItsOwnServiceAccount ./...

browser: ## the HTML report in headless Chromium, a module of its own (installs Debian's as root where missing)
	test/browser/install.sh
	cd test/browser && $(GO) test -count=1 -v ./...

peers: ## replay and benchmarks beside the incumbent's own code, a module of its own
	cd test/peers && $(GO) test ./...

install-test: ## manifests and chart, rendered and applied to a real API server, a module of its own
	cd test/install && $(GO) test ./...

scale: ## the controller on 2,000 workloads with 10,000 pods, and a day of pod churn; docs/performance.md (15 minutes)
	$(GO) run ./test/binaries/cmd/build etcd kube-apiserver
	$(GO) test ./test/scale -run '^$$' -bench Controller -benchtime 1x -timeout 60m -v
	$(GO) test ./controller -run '^$$' -bench DayOfPodChurn -benchtime 1x -timeout 60m

generate: ## deepcopy and the custom resources, from the types in api
	$(GO) run -C test/tools/generate .

verify: lint ## lint, vet, tidy, API conventions, generated files; fails where something is found
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) build -C test/tools/apilint -o $(CURDIR)/bin/apilint .
	bin/apilint ./api/v1alpha1
	$(GO) test ./config/crd

fmt: ## gofumpt and import order
	$(TOOL) golangci-lint fmt ./...

lint: ## golangci-lint
	$(TOOL) golangci-lint run ./...

bench: ## benchmarks, in the form that benchstat reads; BENCH=name COUNT=n
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

golden: ## rewrite the documents and outputs that tests compare with; read the diff
	$(GO) test ./api/v1alpha1 ./config/crd ./report ./cmd/plimsoll ./backtest ./controller -update

fuzz: ## each fuzz target for FUZZTIME
	@for target in $$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
		for name in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$target/*_test.go | cut -c6-); do \
			echo "== $$target $$name"; \
			$(GO) test $$target -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s || exit 1; \
		done; \
	done

cluster: ## a real cluster on loopback, for a person to try things on
	test/cluster/install.sh
	$(GO) run ./test/cluster/cmd/cluster up

cluster-down: ## take it down, leaving nothing
	$(GO) run ./test/cluster/cmd/cluster down
