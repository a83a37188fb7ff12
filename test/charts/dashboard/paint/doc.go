// Package paint draws the panels of a dashboard, with what their queries have, into one
// picture: in the dashboard's own grid, as Grafana's light theme would.
package paint
