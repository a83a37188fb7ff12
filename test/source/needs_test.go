package source

import (
	"go/ast"
	"go/constant"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/internal/proof"
)

// noNeed lists the references that are not in proof.Needs, by the reason why no data is lost without them.
var noNeed = map[string][]string{
	"it is about an object's own volume or snapshot, or about its counterpart": {
		"PersistentVolumeClaimSpec.VolumeName", "VolumeSnapshotStatus.BoundVolumeSnapshotContentName", "VolumeSnapshotContentSpec.VolumeSnapshotRef",
		"VolumeSnapshotContentStatus.SnapshotHandle", "virtual-kubelet.io/mock-pv", "xylem.io/volume-uid", "xylem.io/leaf-uid",
		"xylem.io/leaf-snapshot-uid", "xylem.io/driver", "xylem.io/handle", "xylem.io/shared-attributes", "xylem.io/provisioned-for",
		"AWSElasticBlockStoreVolumeSource.VolumeID", "AzureDiskVolumeSource.DataDiskURI", "CinderPersistentVolumeSource.VolumeID",
		"PortworxVolumeSource.VolumeID", "VsphereVirtualDiskVolumeSource.VolumePath",
	},
	"it names a claim or volume for a user to read":                                     {"OrphanedSnapshot.Snapshot", "OrphanedVolume.Claim", "OrphanedVolume.Volume", "xylem.io/let-go"},
	"as in a single cluster, the provisioner keeps a volume that is attached to a node": {"VolumeAttachmentSource.PersistentVolumeName"},
	"it is a leaf object's stamp": {
		"app.kubernetes.io/managed-by", "xylem.io/host", "xylem.io/root", "xylem.io/root-uid", "xylem.io/root-namespace-uid", "xylem.io/pushed",
	},
	"it is a state of the object itself, which the tables of VOLUMES.md and SNAPSHOTS.md read": {
		"xylem.io/leaf-volume", "xylem.io/reclaim-policy", "xylem.io/deletion-policy", "xylem.io/last-claim-lost", "xylem.io/unused-since", "xylem.io/releasing",
		"xylem.io/abandon", "xylem.io/cluster-gone", "xylem.io/attributes-classes", "xylem.io/reported-by",
	},
	"it is about members, nodes and placement": {
		"xylem.io/cluster", "xylem.io/cluster-id", "xylem.io/virtual-node", "offered-by.xylem.io/", "backend.xylem.io/", "xylem.io/node-group", "xylem.io/node-selector", "xylem.io/topology-", "xylem.io/node-spec", "xylem.io/namespace-rules",
		"xylem.io/placed-in", "xylem.io/steered-to", "xylem.io/tried", "xylem.io/capacity-estimated", "xylem.io/reflect",
	},
	"it is about registrations, fences and restores": {
		"xylem.io/registration", "xylem.io/fence-epoch", "xylem.io/restored", "xylem.io/host-restored", "xylem.io/withdrawn", "xylem.io/confirm-restore",
		"xylem.io/confirm-deregister", "xylem.io/force-deregister", "xylem.io/adopt", "xylem.io/token-lifetime",
	},
}

// storage matches the names of fields that can name a volume, claim or snapshot, or its disk.
var storage = regexp.MustCompile(`Claim|Volume|Snapshot|DataSource|Disk`)

// isReference reports whether a field of an API can name an object or a disk: it is a string, or a reference. The
// name of a class is none.
func isReference(field *types.Var) bool {
	kind := field.Type()
	if pointer, ok := kind.(*types.Pointer); ok {
		kind = pointer.Elem()
	}
	return storage.MatchString(field.Name()) && !strings.HasSuffix(field.Name(), "ClassName") &&
		(types.Identical(kind, types.Typ[types.String]) || strings.HasSuffix(kind.String(), "Reference"))
}

// ofKubernetes reports whether a field belongs to an API of Kubernetes or of its CSI controllers.
func ofKubernetes(field *types.Var) bool {
	return field.Pkg() != nil && (strings.HasPrefix(field.Pkg().Path(), "k8s.io/api/") || strings.HasPrefix(field.Pkg().Path(), "github.com/kubernetes-csi/"))
}

// references returns the ways in which an object can refer to the data of a volume or snapshot: the fields of
// Kubernetes' APIs that the program uses, the fields of Xylem's API, and Xylem's keys.
func references(p *program) map[string]bool {
	found := map[string]bool{}
	for _, file := range p.files {
		ast.Inspect(file.File, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && p.info.Selections[selector] != nil {
				if field, ok := p.info.Selections[selector].Obj().(*types.Var); ok && ofKubernetes(field) && isReference(field) {
					found[ownerOf(p, selector)+"."+field.Name()] = true
				}
			}
			return true
		})
	}
	at := slices.IndexFunc(p.packages, func(pkg *types.Package) bool { return pkg.Path() == module+"api/v1alpha1" })
	scope := p.packages[at].Scope()
	for _, name := range scope.Names() {
		switch object := scope.Lookup(name).(type) {
		case *types.Const:
			if key.MatchString(name) {
				found[constant.StringVal(object.Val())] = true
			}
		case *types.TypeName:
			structure, ok := object.Type().Underlying().(*types.Struct)
			for i := 0; ok && i < structure.NumFields(); i++ {
				if field := structure.Field(i); isReference(field) {
					found[name+"."+field.Name()] = true
				}
			}
		}
	}
	return found
}

// key matches the names of constants for keys of labels, annotations, finalizers and volume attributes.
var key = regexp.MustCompile(`^(Label|Annotation|Finalizer|Attribute)`)

// ownerOf returns the name of the struct that a selected field belongs to.
func ownerOf(p *program, selector *ast.SelectorExpr) string {
	owner := p.info.TypeOf(selector.X)
	if pointer, ok := owner.Underlying().(*types.Pointer); ok {
		owner = pointer.Elem()
	}
	if named, ok := types.Unalias(owner).(*types.Named); ok {
		return named.Obj().Name()
	}
	return owner.String()
}

// unregistered returns the references that are neither in proof.Needs nor in noNeed, and the registered ones that
// do not exist.
func unregistered(found map[string]bool) (missing, gone []string) {
	registered := map[string]bool{}
	for _, need := range proof.Needs {
		for _, by := range need.References {
			registered[by] = true
		}
	}
	for _, all := range noNeed {
		for _, by := range all {
			registered[by] = true
		}
	}
	for by := range found {
		if !registered[by] {
			missing = append(missing, by)
		}
	}
	for by := range registered {
		if !found[by] {
			gone = append(gone, by)
		}
	}
	return missing, gone
}

// TestNeedsAreRegistered fails if a feature uses data without a need in proof.Needs. A controller has no memory, so the
// feature's objects refer to the data: by a field of Kubernetes' APIs that no other code uses, by a field of Xylem's API,
// or by a new key.
func TestNeedsAreRegistered(t *testing.T) {
	for _, need := range proof.Needs {
		if len(need.References) == 0 {
			t.Errorf("need of %q: add the fields and keys by which its objects refer to the data", need.Who)
		}
	}
	missing, gone := unregistered(references(product(t)))
	for _, by := range missing {
		t.Errorf("%s can refer to data: add it to the need of its feature in proof.Needs, or to noNeed with the reason why no data is lost without it", by)
	}
	for _, by := range gone {
		t.Errorf("nothing uses %s any longer: remove it from proof.Needs, or from noNeed", by)
	}
}

// TestNewFeatureIsUnregistered checks that the test above detects a feature that uses a field of its own.
func TestNewFeatureIsUnregistered(t *testing.T) {
	missing, _ := unregistered(references(productWith(t, "feature")))
	if want := []string{"StorageOSPersistentVolumeSource.VolumeName"}; !slices.Equal(missing, want) {
		t.Errorf("unregistered: %q, want %q", missing, want)
	}
}

// TestNeedsNameProofs checks that the proofs that proof.Needs names before a colon, and so the table of VOLUMES.md,
// exist.
func TestNeedsNameProofs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "internal", "proof", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	for _, need := range proof.Needs {
		proofs, _, _ := strings.Cut(need.Proof, ":")
		for name := range strings.SplitSeq(proofs, ", ") {
			if name != "as in a single cluster" && !slices.ContainsFunc(files, func(path string) bool { return declares(path, name) }) {
				t.Errorf("need of %q: package proof declares no %q", need.Who, name)
			}
		}
	}
}
