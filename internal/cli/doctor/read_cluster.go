package doctor

import (
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// objectsMost is the maximum number of objects in a list.
const objectsMost = 20_000

func readVersion(r *inspect.Reader) string {
	v, err := r.Raw.Discovery().ServerVersion()
	if err != nil {
		r.RecordMissing("the Kubernetes version", err)
		return ""
	}
	return v.GitVersion
}
