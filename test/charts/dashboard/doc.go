// Command dashboard draws the chart's Grafana dashboard from the managers' live metrics as one
// PNG, without Grafana. It scrapes the metrics into a Prometheus database with Prometheus' own
// code, runs the panels' queries with Prometheus' engine, and arranges the panels as the
// dashboard defines:
//
//	dashboard --url http://127.0.0.1:8080/metrics --out dashboard.png
//
// It scrapes until it is interrupted or the duration in --for has passed, and then draws.
// `make dashboard` runs it through test/charts/workload.
//
// It fails if a query is invalid, or if a panel without noValue lacks data. If data is missing, it
// still writes the picture. It also prints how long each alert's expression was true.
//
// It is a separate module so that the product does not depend on Prometheus and a plotting
// library. It uses the same versions as test/tools/promtool, so that both share compiled packages.
package main
