// Package doctor tests `kubectl xylem doctor` and `kubectl xylem support-bundle` on real control
// planes, with a correct installation and with broken ones.
package doctor
