// Package doctor tests `kubectl xylem doctor` and `kubectl xylem support-bundle` on real control
// planes: on an installation that is as it should be, and on those that somebody broke.
package doctor
