package register

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/member/access"
)

// readRegistration reads the registration's objects in the host, and returns an error if the run cannot
// succeed.
func (r *run) readRegistration(ctx context.Context) error {
	var list v1alpha1.ClusterRegistrationList
	if err := r.host.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return fmt.Errorf("xylem is not installed in the host at %s: the cluster does not serve ClusterRegistrations. Install Xylem there, or choose another cluster with --context", r.host.Config.Host)
		}
		return command.Explain("the host", r.host.Config, fmt.Errorf("list registrations: %w", err))
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == r.name {
			r.before = other
			continue
		}
		if other.Status.ClusterID == r.MemberID {
			return fmt.Errorf(access.AlreadyRegisteredFormat+". To repair that registration or rotate its token, run `kubectl xylem register %s`; to replace it, deregister it first", other.Name, other.Name)
		}
	}
	if r.before != nil {
		if id := r.before.Status.ClusterID; id != "" && id != r.MemberID {
			return fmt.Errorf(access.OtherClusterFormat+". Choose another name, or run `kubectl xylem deregister %s` first", r.admin.ContextFlag(), r.MemberID, fmt.Sprintf("registration %q", r.name), id, r.name)
		}
		if r.before.DeletionTimestamp != nil {
			return fmt.Errorf("registration %q is being deleted. Wait until it is deleted; `kubectl describe clusterregistration %s` shows what the deletion is waiting for", r.name, r.name)
		}
	}
	var namespace corev1.Namespace
	if err := r.host.Get(ctx, client.ObjectKey{Name: r.Env.Namespace}, &namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("the host has no namespace %q. If Xylem is installed in another one, specify --xylem-namespace", r.Env.Namespace)
		}
		return command.Explain("the host", r.host.Config, fmt.Errorf("read namespace %q: %w", r.Env.Namespace, err))
	}
	return r.lookAtSecret(ctx, list.Items)
}

func (r *run) lookAtSecret(ctx context.Context, all []v1alpha1.ClusterRegistration) error {
	name := r.name + "-kubeconfig"
	if r.before != nil {
		name = r.before.Spec.KubeconfigSecretRef.Name
	}
	r.secret = &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: r.Env.Namespace, Name: name}}
	if other := userOfConfig(all, name, r.name); other != "" {
		return fmt.Errorf("registration %q uses Secret \"%s/%s\", which this command would overwrite. Choose another name, or let the two registrations use different Secrets (spec.kubeconfigSecretRef)", other, r.Env.Namespace, name)
	}
	var there corev1.Secret
	err := r.host.Get(ctx, client.ObjectKeyFromObject(r.secret), &there)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return command.Explain("the host", r.host.Config, fmt.Errorf("read Secret \"%s/%s\": %w", r.Env.Namespace, name, err))
	}
	r.secretBefore = &there
	return r.mayOverwrite()
}

// mayOverwrite returns an error if somebody else created the Secret, and no flag allows the command to
// overwrite it. It is pure.
func (r *run) mayOverwrite() error {
	namespace, name := r.secretBefore.Namespace, r.secretBefore.Name
	const instead = "specify --overwrite-secret to replace its credentials with a token that the manager renews. `kubectl xylem deregister` then deletes the Secret too"
	switch {
	case r.overwrite, r.secretBefore.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue:
		return nil
	case r.before == nil:
		return fmt.Errorf("the host already has a Secret \"%[1]s/%[2]s\", which this command did not create and no registration uses. Delete it with `kubectl -n %[1]s delete secret %[2]s`, choose another name, or "+instead, namespace, name)
	}
	return fmt.Errorf("this command did not create Secret \"%s/%s\", which contains the credentials of registration %q. Write new credentials to the Secret yourself, or "+instead, namespace, name, r.name)
}

// userOfConfig returns the name of a registration, other than the given one, that uses a Secret.
// It is pure.
func userOfConfig(all []v1alpha1.ClusterRegistration, secret, than string) string {
	for i := range all {
		if all[i].Name != than && all[i].Spec.KubeconfigSecretRef.Name == secret {
			return all[i].Name
		}
	}
	return ""
}

// registration returns the ClusterRegistration with the changes that the flags request.
func (r *run) registration() *v1alpha1.ClusterRegistration {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	if r.before != nil {
		cr = r.before.DeepCopy()
	}
	cr.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterRegistration"}
	cr.Spec.KubeconfigSecretRef.Name = r.name + "-kubeconfig"
	if r.before != nil {
		cr.Spec.KubeconfigSecretRef = r.before.Spec.KubeconfigSecretRef
	}
	r.spec.ApplyTo(&cr.Spec)
	return cr
}

// filledRegistration returns the Secret with the manager's kubeconfig.
func (r *run) filledRegistration(kubeconfig []byte) *corev1.Secret {
	secret := r.secret.DeepCopy()
	if r.secretBefore != nil {
		r.secretBefore.DeepCopyInto(secret)
		secret.TypeMeta = r.secret.TypeMeta
	}
	secret.Labels = withDefaults(secret.Labels, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)
	secret.Annotations = withDefaults(secret.Annotations, v1alpha1.AnnotationTokenLifetime, r.Lifetime.String())
	secret.Data = maps.Clone(secret.Data)
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[v1alpha1.KubeconfigKey] = kubeconfig
	return secret
}

func withDefaults(m map[string]string, key, value string) map[string]string {
	if m = maps.Clone(m); m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// writeHostObjects creates or changes both objects in the host. If dry is set, the host only validates
// them.
func (r *run) writeHostObjects(ctx context.Context, kubeconfig []byte, dry bool) error {
	if err := r.writeSecret(ctx, kubeconfig, dry); err != nil {
		return command.Explain("the host", r.host.Config, fmt.Errorf("write Secret \"%s/%s\": %w", r.secret.Namespace, r.secret.Name, err))
	}
	if err := r.writeRegistration(ctx, dry); err != nil {
		return command.Explain("the host", r.host.Config, fmt.Errorf("write registration %q: %w", r.name, err))
	}
	if err := r.writeIdentity(ctx, dry); err != nil {
		return command.Explain("the host", r.host.Config, fmt.Errorf("let the manager act as the virtual node: %w", err))
	}
	return nil
}

func (r *run) writeSecret(ctx context.Context, kubeconfig []byte, dry bool) error {
	secret := r.filledRegistration(kubeconfig)
	if r.secretBefore == nil {
		write := func() error { return r.host.Create(ctx, secret, command.CreateOptions(dry)...) }
		if dry {
			return write()
		}
		by := fmt.Sprintf("kubectl -n %s delete secret %s", secret.Namespace, secret.Name)
		return r.Journal.DoAndRemember(undoStep{What: "Secret " + secret.Name, By: by, Undo: func(ctx context.Context) (bool, error) {
			return r.UndoCreation(ctx, r.host, secret)
		}}, write)
	}
	write := func() error {
		// Patch without a resourceVersion, so that the patch succeeds even if the manager renews
		// the token at the same time.
		return r.host.Patch(ctx, secret, client.MergeFrom(r.secretBefore), command.PatchOptions(dry)...)
	}
	if dry {
		return write()
	}
	return r.Journal.DoAndRemember(undoStep{
		What: "the new kubeconfig in Secret " + secret.Name, By: "register again with a working kubeconfig",
		Undo: func(ctx context.Context) (bool, error) { return r.restoreSecret(ctx, kubeconfig) },
	}, write)
}

// restoreSecret restores the Secret's earlier content, unless somebody else, such as the manager,
// has changed it since.
func (r *run) restoreSecret(ctx context.Context, written []byte) (bool, error) {
	var now corev1.Secret
	if err := r.host.Get(ctx, client.ObjectKeyFromObject(r.secret), &now); err != nil {
		return false, err
	}
	if now.UID != r.secretBefore.UID {
		return false, errChangedMeanwhile
	}
	held := now.Data[v1alpha1.KubeconfigKey]
	if bytes.Equal(held, r.secretBefore.Data[v1alpha1.KubeconfigKey]) {
		return false, nil
	}
	if !bytes.Equal(held, written) {
		return false, errChangedMeanwhile
	}
	was := now.DeepCopy()
	was.Labels, was.Annotations, was.Data = r.secretBefore.Labels, r.secretBefore.Annotations, r.secretBefore.Data
	return true, r.host.Patch(ctx, was, client.MergeFromWithOptions(&now, client.MergeFromWithOptimisticLock{}), FieldOwner)
}

// againstManager is the backoff after conflicts, in all about five seconds. The manager writes the status several
// times in a row while it connects again with the new Secret.
var againstManager = wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.1}

func (r *run) writeRegistration(ctx context.Context, dry bool) error {
	cr := r.registration()
	if r.before == nil {
		write := func() error { return r.host.Create(ctx, cr, command.CreateOptions(dry)...) }
		if dry {
			return write()
		}
		return r.Journal.DoAndRemember(undoStep{
			What: "registration " + r.name, By: "kubectl delete clusterregistration " + r.name,
			Undo: func(ctx context.Context) (bool, error) { return r.withdrawRegistration(ctx, cr) },
		}, write)
	}
	if equality.Semantic.DeepEqual(r.before.Spec, cr.Spec) {
		return nil
	}
	wanted := cr.Spec.DeepCopy()
	// The manager may write the status at any time, so only a changed spec is a conflict.
	write := func() error {
		return retry.RetryOnConflict(againstManager, func() error {
			var now v1alpha1.ClusterRegistration
			if err := r.host.Get(ctx, client.ObjectKey{Name: r.name}, &now); err != nil {
				return err
			}
			if now.UID != r.before.UID || !equality.Semantic.DeepEqual(now.Spec, r.before.Spec) {
				return errChangedMeanwhile
			}
			cr = now.DeepCopy()
			cr.Spec = *wanted
			return r.host.Patch(ctx, cr, client.MergeFromWithOptions(&now, client.MergeFromWithOptimisticLock{}), command.PatchOptions(dry)...)
		})
	}
	if dry {
		return write()
	}
	return r.Journal.DoAndRemember(undoStep{
		What: "the changes to registration " + r.name, By: "kubectl edit clusterregistration " + r.name,
		Undo: func(ctx context.Context) (bool, error) { return r.restoreRegistration(ctx, wanted) },
	}, write)
}

func (r *run) restoreRegistration(ctx context.Context, written *v1alpha1.ClusterRegistrationSpec) (bool, error) {
	var now v1alpha1.ClusterRegistration
	if err := r.host.Get(ctx, client.ObjectKey{Name: r.name}, &now); err != nil {
		return false, err
	}
	switch {
	case now.UID != r.before.UID:
		return false, errChangedMeanwhile
	case equality.Semantic.DeepEqual(now.Spec, r.before.Spec):
		return false, nil
	case !equality.Semantic.DeepEqual(&now.Spec, written):
		return false, errChangedMeanwhile
	}
	was := now.DeepCopy()
	was.Spec = r.before.Spec
	return true, r.host.Patch(ctx, was, client.MergeFromWithOptions(&now, client.MergeFromWithOptimisticLock{}), FieldOwner)
}

// withdrawRegistration deletes a registration that this run has created, and waits until it is deleted, because
// the manager needs the Secret until then.
func (r *run) withdrawRegistration(ctx context.Context, cr *v1alpha1.ClusterRegistration) (bool, error) {
	did, err := r.UndoCreation(ctx, r.host, cr)
	if err != nil || !did {
		return did, err
	}
	return true, retryPatiently(ctx, func(ctx context.Context) (bool, error) {
		var now v1alpha1.ClusterRegistration
		err := r.host.Get(ctx, client.ObjectKeyFromObject(cr), &now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != cr.UID {
			return true, nil
		}
		return false, err
	})
}
