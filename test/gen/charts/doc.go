// Command charts generates the parts of the Helm charts that come from other files. It generates
// CRDs, RBAC, admission policies and the CSIDriver from kustomize's output for config/. It
// generates the descriptions in values.schema.json and the table of values in README.md from the
// comments in values.yaml.
//
//	go run ./test/gen/charts --kustomize bin/kustomize            # write
//	go run ./test/gen/charts --kustomize bin/kustomize --verify   # print differences, and fail
package main
