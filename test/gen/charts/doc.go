// Command charts generates what the Helm charts take from elsewhere: CRDs, RBAC,
// admission policies and the CSIDriver from what kustomize builds of config/, the
// descriptions in values.schema.json and the table of values in README.md from the
// comments of values.yaml.
//
//	go run ./test/gen/charts --kustomize bin/kustomize            # write
//	go run ./test/gen/charts --kustomize bin/kustomize --verify   # say what would change, and fail
package main
