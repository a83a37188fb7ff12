// Package bundle implements `kubectl xylem support-bundle`, which archives what a bug report needs,
// without secrets. It keeps only listed fields of objects, and only the values of listed annotations
// and parameters. In text, it replaces known credentials and everything that looks like a credential.
package bundle
