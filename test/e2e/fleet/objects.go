package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// each calls do for every listable kind in a cluster, with that kind's objects.
func each(ctx context.Context, c *Cluster, do func(kind schema.GroupVersionResource, list []unstructured.Unstructured) error) error {
	config := rest.CopyConfig(c.Config)
	config.WarningHandler = rest.NoWarnings{} // Hide warnings about deprecated kinds.
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a client of %s: %w", c.Name, err)
	}
	found, err := discovery.ServerPreferredResources(c.Typed.Discovery())
	if err != nil {
		return fmt.Errorf("discover the API of %s: %w", c.Name, err)
	}
	for _, group := range found {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return fmt.Errorf("read the API groups of %s: %w", c.Name, err)
		}
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			resource := version.WithResource(kind.Name)
			list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			switch {
			case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
				continue // The kind was removed in the meantime, or cannot be listed although discovery reports it.
			case err != nil:
				return fmt.Errorf("list %s of %s: %w", resource.Resource, c.Name, err)
			}
			if err := do(resource, list.Items); err != nil {
				return err
			}
		}
	}
	return nil
}

// passing lists kinds whose objects Kubernetes itself creates and deletes.
var passing = map[string]bool{
	"events": true, "componentstatuses": true, "certificatesigningrequests": true, "endpointslices": true,
	"endpoints": true, "ipaddresses": true, "controllerrevisions": true,
}

// Inventory lists the objects of a cluster by kind, namespace and name, except those that
// Kubernetes itself creates and deletes. It also skips Pods and Leases in Kubernetes' own
// namespaces, because a restarted node may replace them.
func Inventory(ctx context.Context, c *Cluster) ([]string, error) {
	var names []string
	err := each(ctx, c, func(kind schema.GroupVersionResource, list []unstructured.Unstructured) error {
		if passing[kind.Resource] {
			return nil
		}
		for _, o := range list {
			if (kind.Resource == "pods" || kind.Resource == "leases") && strings.HasPrefix(o.GetNamespace(), "kube-") {
				continue
			}
			name := kind.GroupResource().String() + " " + o.GetName()
			if o.GetNamespace() != "" {
				name = kind.GroupResource().String() + " " + o.GetNamespace() + "/" + o.GetName()
			}
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// collectObjects writes all objects of a cluster into a directory, with a file for each kind.
// It omits the contents of Secrets.
func collectObjects(ctx context.Context, c *Cluster, dir string) error {
	to := filepath.Join(dir, "objects")
	if err := os.MkdirAll(to, 0o750); err != nil {
		return fmt.Errorf("create a directory for the objects of %s: %w", c.Name, err)
	}
	return errors.Join(each(ctx, c, func(kind schema.GroupVersionResource, list []unstructured.Unstructured) error {
		if len(list) == 0 {
			return nil
		}
		var text strings.Builder
		for _, o := range list {
			if kind.Resource == "secrets" {
				unstructured.RemoveNestedField(o.Object, "data")
			}
			o.SetManagedFields(nil)
			content, err := yaml.Marshal(o.Object)
			if err != nil {
				return fmt.Errorf("write %s of %s: %w", kind.Resource, c.Name, err)
			}
			text.WriteString("---\n" + string(content))
		}
		file := filepath.Join(to, kind.GroupResource().String()+".yaml")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			return fmt.Errorf("write %s of %s: %w", kind.Resource, c.Name, err)
		}
		return nil
	}))
}
