// Package doctor tests `kubectl xylem doctor` and `kubectl xylem support-bundle` on real control
// planes: on a correct installation, and on broken ones.
package doctor
