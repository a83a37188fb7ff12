// Package redact removes possible secrets from objects and text before they leave the clusters in a
// support bundle. It keeps only listed fields of objects, and only the values of listed annotations
// and parameters. In text, it replaces known credentials and everything that looks like a
// credential. It is pure.
package redact
