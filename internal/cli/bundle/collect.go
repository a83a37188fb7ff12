package bundle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/doctor"
	"github.com/xylem-io/xylem/internal/wording"
)

const (
	// pageSize is the maximum number of objects in a page of a list, and most is the maximum for each
	// kind.
	pageSize = 500
	most     = 20_000
	// memberTotal limits how long the plugin reads one member.
	memberTotal = 2 * time.Minute
)

// readme explains the archive to its reader.
const readme = `A support bundle of Xylem, written by kubectl xylem support-bundle.

doctor.txt, doctor.json   what kubectl xylem doctor found
versions.yaml             the versions of the plugin and of each cluster
host/                     objects of the host, and the manager's logs and metrics
members/NAME/             objects of each member that could be read
missing.yaml              what could not be read, and why

The archive contains no commands, no values of environment variables, third-party annotations or class parameters, and
no contents of Secrets or ConfigMaps. REDACTED replaces text that was removed.
`

// collectFiles writes all files of the archive.
func (o *options) collectFiles(ctx context.Context, b *bundle, s *doctor.Sources) error {
	for _, m := range s.Missing {
		b.recordMissing(m.Cluster, m.What, errors.New(m.Why))
	}
	if err := b.writeFile("README.txt", readme); err != nil {
		return err
	}
	for _, part := range []func() error{
		func() error { return o.writeDoctorFindings(ctx, b) },
		func() error { return b.writeVersions(s) },
		func() error { return o.collectHost(ctx, b, &s.Host) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	slices.SortFunc(s.Members, func(a, b doctor.Source) int { return cmp.Compare(folderOfSource(&a), folderOfSource(&b)) })
	for i := range s.Members {
		if err := b.collectMember(ctx, &s.Members[i], s.Host.ID, o.env.Namespace); err != nil {
			return err
		}
	}
	if len(b.missing) == 0 {
		return nil
	}
	return b.writeYAML(missingFile, b.missing)
}

// writeDoctorFindings writes the findings of `kubectl xylem doctor`.
func (o *options) writeDoctorFindings(ctx context.Context, b *bundle) error {
	checkup, err := doctor.ExamineInstallation(ctx, o.env, o.way)
	if err != nil {
		b.recordMissing("", "the findings of kubectl xylem doctor", err)
		return nil
	}
	if err := b.writeText("doctor.txt", doctor.CheckupText(checkup)); err != nil {
		return err
	}
	content, err := json.MarshalIndent(checkup, "", "  ")
	if err != nil {
		return fmt.Errorf("doctor.json: %w", err)
	}
	return b.writeText("doctor.json", string(content)+"\n")
}

func (b *bundle) writeVersions(s *doctor.Sources) error {
	versions := map[string]any{"plugin": command.Version, "go": runtime.Version(), "created": b.now.UTC().Format(time.RFC3339)}
	clusters := map[string]any{}
	for i, source := range append([]doctor.Source{s.Host}, s.Members...) {
		name := "host"
		if i > 0 {
			name = folderOfSource(&source)
		}
		v, err := source.Raw.Discovery().ServerVersion()
		if err != nil {
			b.recordMissing(source.Name, "the Kubernetes version", err)
			continue
		}
		clusters[name] = map[string]any{"id": source.ID, "kubernetes": v.GitVersion, "platform": v.Platform}
	}
	versions["clusters"] = clusters
	return b.writeYAML("versions.yaml", versions)
}

// folderOfSource returns the folder of a member in the archive.
func folderOfSource(s *doctor.Source) string {
	if s.Name != "" {
		return path.Join("members", s.Name)
	}
	return "members/unregistered"
}

// cluster reads lists from one cluster.
type cluster struct {
	*bundle
	source *doctor.Source
	folder string
}

// readObjects lists a kind, page by page, and returns the objects that keep accepts, or all if keep is
// nil.
func (c *cluster) readObjects(ctx context.Context, kind schema.GroupVersionKind, keep func(*unstructured.Unstructured) bool, opts ...client.ListOption) []*unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	var kept []*unstructured.Unstructured
	next, seen := "", 0
	for {
		list.Items = nil
		err := c.source.List(ctx, list, append(opts, client.Limit(pageSize), client.Continue(next))...)
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // the cluster does not serve the kind
			return kept
		case err != nil:
			c.recordMissing(c.source.Name, wording.PluralNoun(kind.Kind), err)
			return kept
		}
		for i := range list.Items {
			if obj := &list.Items[i]; keep == nil || keep(obj) {
				kept = append(kept, obj)
			}
		}
		seen += len(list.Items)
		if next = list.GetContinue(); next == "" {
			return kept
		}
		if seen >= most {
			c.recordMissing(c.source.Name, wording.PluralNoun(kind.Kind), fmt.Errorf("there are more than %d, and the rest was not read", most))
			return kept
		}
	}
}

// saveObjects writes objects to a file in the cluster's folder.
func (c *cluster) saveObjects(file string, objects []*unstructured.Unstructured) error {
	return c.writeList(path.Join(c.folder, file+".yaml"), objects)
}
