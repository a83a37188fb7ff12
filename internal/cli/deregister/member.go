package deregister

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/wording"
)

// recordPrefix, followed by a member's cluster ID, is the name of the host's record of that member,
// a Lease.
const recordPrefix = "fence-"

// there describes what this host and other hosts still have in a member.
type there struct {
	// hosts are the IDs of other hosts with a fence in the member.
	hosts []string
	// volumes and claims count the objects with this host's stamp. namespaces lists the namespaces
	// with this host's label.
	volumes, claims int
	namespaces      []string
	// record is the host's record of the member, and fence is this host's fence in the member. Either
	// may be nil.
	record, fence *coordinationv1.Lease
}

func (r *run) surveyObjects(ctx context.Context) (*there, error) {
	t := &there{}
	ours := client.MatchingLabels{v1alpha1.LabelHost: r.hostID}
	var leases coordinationv1.LeaseList
	if err := r.member.List(ctx, &leases, client.InNamespace(r.env.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Leases in namespace %q: %w", r.env.Namespace, err)
	}
	for i := range leases.Items {
		switch host := leases.Items[i].Labels[v1alpha1.LabelHost]; {
		case leases.Items[i].Name == r.hostID:
			t.fence = &leases.Items[i]
		case host != "" && host != r.hostID:
			t.hosts = append(t.hosts, host)
		}
	}
	var volumes corev1.PersistentVolumeList
	var claims corev1.PersistentVolumeClaimList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&volumes, &claims, &namespaces} {
		if err := r.member.List(ctx, list, ours); err != nil {
			return nil, fmt.Errorf("list the host's objects in the member: %w", err)
		}
	}
	t.volumes, t.claims, t.namespaces = len(volumes.Items), len(claims.Items), sortedKeys(namespaces.Items)
	var err error
	if t.record, err = index.FindObject[coordinationv1.Lease](ctx, r.host, client.ObjectKey{Namespace: r.env.Namespace, Name: recordPrefix + r.memberID}); err != nil {
		return nil, fmt.Errorf("read the host's record of the member: %w", err)
	}
	return t, nil
}

// forgettable reports whether the member has no volume or claim of the host, and neither Lease
// records an abandoned volume or a withdrawn claim.
func (t *there) forgettable() bool {
	return t.volumes+t.claims == 0 && !t.notedObjects(v1alpha1.AnnotationWithdrawn) && !t.notedObjects(v1alpha1.AnnotationLetGo)
}

// notedObjects reports whether at least one of the two Leases has the annotation.
func (t *there) notedObjects(annotation string) bool {
	return slices.ContainsFunc([]*coordinationv1.Lease{t.record, t.fence}, func(lease *coordinationv1.Lease) bool {
		return lease != nil && lease.Annotations[annotation] != ""
	})
}

// removeAccount removes this host's account in the member, and the objects that refer to it.
func (r *run) removeAccount(ctx context.Context) error {
	own, err := config.MemberFor(command.HostAccount(r.hostID), config.Parts...)
	if err != nil {
		return err
	}
	slices.Reverse(own)
	for _, obj := range own {
		if !config.OfAccount(obj) {
			continue
		}
		if err := r.removeObject(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// cleanMember removes from the member the objects that register created: the account with its tokens, its
// permissions, and the policies. If objects of the host remain, clean keeps their records too: the
// namespace with the fence, and the policy that protects stamps.
func (r *run) cleanMember(ctx context.Context) error {
	left, err := r.surveyObjects(ctx)
	if err != nil {
		return command.Explain("the member", r.member.Config, err)
	}
	if err := r.removeAccount(ctx); err != nil {
		return command.Explain("the member", r.member.Config, err)
	}
	if len(left.hosts) > 0 {
		r.reportMemberStays("in the member: Xylem's policies and permissions, which other hosts also use (%s)", shownNames(left.hosts))
		return nil
	}
	objects, err := config.Member(config.Parts...) // including the account that an earlier version or kubectl apply -k created
	if err != nil {
		return err
	}
	slices.Reverse(objects)
	gone := true // whether the namespace with the fence no longer exists
	for _, obj := range objects {
		if !left.forgettable() && (obj.GetKind() == "Namespace" || obj.GetName() == "xylem-stamps") {
			continue
		}
		if obj.GetKind() == "Namespace" {
			gone, err = r.removeNamespace(ctx, obj)
		} else {
			err = r.removeObject(ctx, obj)
		}
		if err != nil {
			return command.Explain("the member", r.member.Config, err)
		}
	}
	if len(left.namespaces) > 0 {
		r.reportMemberStays("in the member: namespaces of this host (%s)", shownNames(left.namespaces))
	}
	if !left.forgettable() {
		r.reportMemberStays("in the member: %s and %s of this host. Namespace %q and policy \"xylem-stamps\" stay too, because they record and protect ownership",
			wording.CountNoun(left.volumes, "volume"), wording.CountNoun(left.claims, "claim"), r.env.Namespace)
		return nil
	}
	if left.record == nil || !gone {
		return nil
	}
	// The fence was deleted with its namespace. If the host's record remained, the manager would
	// conclude, after a new registration, that the member was restored from a backup.
	if err := client.IgnoreNotFound(r.host.Delete(ctx, left.record, client.Preconditions{UID: &left.record.UID})); err != nil {
		return command.Explain("the host", r.host.Config, fmt.Errorf("delete Lease \"%s/%s\": %w", left.record.Namespace, left.record.Name, err))
	}
	return nil
}

// removeNamespace removes the namespace, with everything in it, if register created it and no other
// host uses it. It reports whether the namespace was deleted.
func (r *run) removeNamespace(ctx context.Context, obj *unstructured.Unstructured) (bool, error) {
	now, err := index.FindObject[corev1.Namespace](ctx, r.member, client.ObjectKeyFromObject(obj))
	if err != nil || now == nil {
		return err == nil, err
	}
	if !command.CreatedByXylem(now) {
		r.reportMemberStays("in the member: namespace %q, which this plugin did not create", now.Name)
		return false, nil
	}
	held, err := r.member.Holds(ctx, now.Name, r.hostID)
	if err != nil {
		r.reportMemberStays("in the member: namespace %q, because its contents could not be listed (%v)", now.Name, err)
		return false, nil
	}
	if len(held) > 0 {
		r.reportMemberStays("in the member: namespace %q, which contains objects that this plugin did not create (%s)", now.Name, shownNames(held))
		return false, nil
	}
	if err := client.IgnoreNotFound(r.member.Delete(ctx, now, client.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion})); err != nil {
		return false, fmt.Errorf("delete namespace %q: %w", now.Name, err)
	}
	return true, nil
}

func (r *run) removeObject(ctx context.Context, obj *unstructured.Unstructured) error {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(obj.GroupVersionKind())
	what := obj.GetKind() + " " + obj.GetName()
	if found, err := index.GetIfExists(ctx, r.member, client.ObjectKeyFromObject(obj), now); err != nil || !found {
		return err
	}
	if now.GetLabels()[v1alpha1.LabelManagedBy] == "Helm" {
		r.reportMemberStays("in the member: %s, which Helm manages (run helm uninstall)", what)
		return nil
	}
	if !command.Xylems(now) {
		r.reportMemberStays("in the member: %s, which does not belong to Xylem because the label %s=%s is missing", what, command.LabelName, command.LabelNameValue)
		return nil
	}
	uid := now.GetUID()
	if err := client.IgnoreNotFound(r.member.Delete(ctx, now, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("delete %s: %w", what, err)
	}
	return nil
}
