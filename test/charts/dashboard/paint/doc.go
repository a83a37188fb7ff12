// Package paint draws a dashboard's panels, with the results of their queries, into one picture.
// It uses the dashboard's grid and the style of Grafana's light theme.
package paint
