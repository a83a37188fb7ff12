// Command dashboard draws the chart's Grafana dashboard from the live metrics of managers as
// one PNG, without Grafana. It scrapes the metrics with Prometheus' own code into a Prometheus
// database, runs the panels' queries with Prometheus' engine, and arranges the panels according
// to the dashboard:
//
//	dashboard --url http://127.0.0.1:8080/metrics --out dashboard.png
//
// It scrapes until it is interrupted or the time of --for has passed, and then draws. make
// dashboard runs it through test/charts/workload.
//
// It fails if a query is wrong, or if a panel without noValue has no data. It writes the picture
// even in that case. It also prints how long the expression of each alert was true.
//
// It is a separate module so that the product does not depend on Prometheus and a plotting
// library. Its versions are those of test/tools/promtool, so that both share compiled packages.
package main
