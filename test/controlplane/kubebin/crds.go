package kubebin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// snapshotModule is the module with the types and the definitions of VolumeSnapshots.
const snapshotModule = "github.com/kubernetes-csi/external-snapshotter/client/v8"

// SnapshotCRDs returns the files with the CustomResourceDefinitions of VolumeSnapshot,
// VolumeSnapshotContent and VolumeSnapshotClass. They are in Go's module cache, in the version of
// the types that the repository at root uses. Go downloads the module if necessary.
func SnapshotCRDs(ctx context.Context, root string) ([]string, error) {
	cmd := goCommand(ctx, root, "mod", "download", "-json", snapshotModule)
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(out, &module); err == nil {
		err = decodeErr
	}
	if err == nil && module.Dir == "" {
		err = errors.New("the module has no directory")
	}
	if err != nil {
		return nil, failed(ctx, "find the definitions of VolumeSnapshots", err, []byte(module.Error))
	}
	var files []string
	for _, kind := range []string{"volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"} {
		file := filepath.Join(module.Dir, "config", "crd", "snapshot.storage.k8s.io_"+kind+".yaml")
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("find the definitions of VolumeSnapshots: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}
