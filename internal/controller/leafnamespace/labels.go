package leafnamespace

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/internal/mirror"
)

// fieldManager is the name of this controller in managed fields.
const fieldManager = mirror.FieldManagerPrefix + string(actor)

// readAppliedLabels returns the keys of a namespace's labels that Xylem owns.
func (r *reconciler) readAppliedLabels(ctx context.Context, name string) (sets.Set[string], error) {
	var live corev1.Namespace // managed fields are not in the cache
	if err := r.Live.Get(ctx, types.NamespacedName{Name: name}, &live); err != nil {
		return nil, fmt.Errorf("read the managed fields of namespace %s: %w", name, err)
	}
	keys := sets.New[string]()
	for _, entry := range live.ManagedFields {
		if entry.Manager != fieldManager || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("parse the managed fields of namespace %s: %w", name, err)
		}
		keys = keys.Union(labelKeysOfFields(fields))
	}
	return keys, nil
}

// logKeptNamespace logs why an unneeded namespace is kept.
func (r *reconciler) logKeptNamespace(ctx context.Context, name, held string) {
	ctrl.LoggerFrom(ctx).V(1).Info("keeping an unneeded namespace", "leaf", name, "held", held)
}
