# Everything a person does here, by name. `make help` lists it.
GO        ?= go
GOFLAGS   ?=
# The race detector needs cgo and with it a C compiler; without one the tests run all the same.
RACE      := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
FUZZTIME  ?= 60s
BENCHTIME ?= 1s
COUNT     ?= 1

.DEFAULT_GOAL := help
.PHONY: help build test verify fmt lint bench fuzz

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/plimsoll
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/plimsoll ./cmd/plimsoll

test: ## unit tests and tests against real servers that Go can build
	$(GO) test $(RACE) -shuffle=on ./...
