// Package redact removes from objects and texts what may be secret, before they leave the
// clusters in a support bundle. Of objects, it keeps listed fields only; of annotations and
// parameters, the values of listed keys only. In texts, it replaces what looks like a credential,
// and the values that are known to be one. It is pure.
package redact
