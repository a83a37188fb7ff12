// Command dashboard draws the chart's Grafana dashboard from the live metrics of
// managers, as one PNG, where there is no Grafana. It reads the metrics as Prometheus
// does, with Prometheus' own scraper into its own database, asks that database the
// panels' own queries by its own engine, and lays the panels out as the dashboard says:
//
//	dashboard --url http://127.0.0.1:8080/metrics --out dashboard.png
//
// reads until it is interrupted, or for as long as --for says, and then draws. make
// dashboard lets test/charts/workload run it.
//
// It fails if a query is wrong, or if a panel has no data that does not say by noValue
// that it may have none; the picture is written anyway. It says as well for how
// long the expression of each alert held.
//
// It is a module of its own, so that the product's does not depend on what draws. Its
// versions are those of test/tools/promtool, so that what is compiled for one serves
// the other.
package main
