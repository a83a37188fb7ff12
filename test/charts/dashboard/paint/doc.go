// Package paint draws the panels of a dashboard, with the results of their queries, into one
// picture: in the dashboard's grid, and in the style of Grafana's light theme.
package paint
