module github.com/xylem-io/xylem/test/tools/monitoring

go 1.26.0

// Only for the CRDs that it carries: nothing of it is compiled.
require github.com/prometheus-operator/prometheus-operator v0.85.0
