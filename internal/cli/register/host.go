package register

import (
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
)

// look reads what the host has of this registration, and refuses what could not
// come to a good end.
func (r *run) look(ctx context.Context) error {
	var list v1alpha1.ClusterRegistrationList
	if err := r.host.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return fmt.Errorf("xylem is not installed in the host at %s (it knows no ClusterRegistrations): install it there first, or choose another cluster with --context", r.host.Config.Host)
		}
		return command.Explain("the host", r.host.Config, fmt.Errorf("list registrations: %w", err))
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == r.name {
			r.before = other
			continue
		}
		if other.Status.ClusterID == r.memberID {
			return fmt.Errorf("this cluster (%s) is registered already, as %s: run `kubectl xylem register %s …` to repair or rotate that, or deregister it first", r.memberID, other.Name, other.Name)
		}
	}
	if r.before != nil {
		if id := r.before.Status.ClusterID; id != "" && id != r.memberID {
			return fmt.Errorf("registration %s is another cluster's (%s; the member's kubeconfig leads to %s): choose another name, or deregister that one first", r.name, id, r.memberID)
		}
		if r.before.DeletionTimestamp != nil {
			return fmt.Errorf("registration %s is being deleted: wait until it is gone (kubectl describe clusterregistration %s says what it waits for)", r.name, r.name)
		}
	}
	var namespace corev1.Namespace
	if err := r.host.Get(ctx, client.ObjectKey{Name: r.env.Namespace}, &namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("the host has no namespace %s: is Xylem installed in another one (--xylem-namespace)?", r.env.Namespace)
		}
		return command.Explain("the host", r.host.Config, fmt.Errorf("read namespace %s: %w", r.env.Namespace, err))
	}
	return r.lookAtSecret(ctx)
}

func (r *run) lookAtSecret(ctx context.Context) error {
	name := r.name + "-kubeconfig"
	if r.before != nil {
		name = r.before.Spec.KubeconfigSecretRef.Name
	}
	r.secret = &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: r.env.Namespace, Name: name}}
	var there corev1.Secret
	err := r.host.Get(ctx, client.ObjectKeyFromObject(r.secret), &there)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return command.Explain("the host", r.host.Config, fmt.Errorf("read Secret %s/%s: %w", r.env.Namespace, name, err))
	case r.before == nil && there.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue:
		return fmt.Errorf("the host has a Secret %s/%s, which no registration uses and this command did not make: delete it, or choose another name", r.env.Namespace, name)
	}
	r.secretBefore = &there
	return nil
}

// registration is what the ClusterRegistration is to be: what it is, with what the
// flags say.
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
	r.spec.applyTo(&cr.Spec)
	return cr
}

// filled is the Secret with a kubeconfig.
func (r *run) filled(kubeconfig []byte) *corev1.Secret {
	secret := r.secret.DeepCopy()
	if r.secretBefore != nil {
		r.secretBefore.DeepCopyInto(secret)
		secret.TypeMeta = r.secret.TypeMeta
	}
	secret.Labels = with(secret.Labels, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)
	secret.Annotations = with(secret.Annotations, v1alpha1.AnnotationTokenLifetime, r.lifetime.String())
	secret.Data = maps.Clone(secret.Data)
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[v1alpha1.KubeconfigKey] = kubeconfig
	return secret
}

func with(m map[string]string, key, value string) map[string]string {
	if m = maps.Clone(m); m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// write makes or changes both objects in the host.
func (r *run) write(ctx context.Context, kubeconfig []byte, opts ...writeOption) error {
	dry := len(opts) > 0
	if err := r.writeSecret(ctx, kubeconfig, dry); err != nil {
		return command.Explain("the host", r.host.Config, fmt.Errorf("write Secret %s/%s: %w", r.secret.Namespace, r.secret.Name, err))
	}
	if err := r.writeRegistration(ctx, dry); err != nil {
		return command.Explain("the host", r.host.Config, fmt.Errorf("write registration %s: %w", r.name, err))
	}
	return nil
}

type writeOption struct{}

// dryRun has nothing changed.
var dryRun writeOption

func (r *run) writeSecret(ctx context.Context, kubeconfig []byte, dry bool) error {
	secret := r.filled(kubeconfig)
	if r.secretBefore == nil {
		if err := r.host.Create(ctx, secret, createOptions(dry)...); err != nil || dry {
			return err
		}
		r.journal.did("Secret "+secret.Name, fmt.Sprintf("kubectl -n %s delete secret %s", secret.Namespace, secret.Name), func(ctx context.Context) error {
			return client.IgnoreNotFound(r.host.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}))
		})
		return nil
	}
	// Without a resourceVersion, here and below: the manager writes statuses, and
	// renews tokens, at any time, and the patch is what the admin wants in any case.
	if err := r.host.Patch(ctx, secret, client.MergeFrom(r.secretBefore), patchOptions(dry)...); err != nil || dry {
		return err
	}
	r.journal.did("the new kubeconfig in Secret "+secret.Name, "register again with a kubeconfig that works", func(ctx context.Context) error {
		was := secret.DeepCopy()
		was.Labels, was.Annotations, was.Data = r.secretBefore.Labels, r.secretBefore.Annotations, r.secretBefore.Data
		return r.host.Patch(ctx, was, client.MergeFrom(secret), fieldOwner)
	})
	return nil
}

func (r *run) writeRegistration(ctx context.Context, dry bool) error {
	cr := r.registration()
	if r.before == nil {
		if err := r.host.Create(ctx, cr, createOptions(dry)...); err != nil || dry {
			return err
		}
		r.journal.did("registration "+r.name, "kubectl delete clusterregistration "+r.name, func(ctx context.Context) error { return r.withdraw(ctx, cr) })
		return nil
	}
	if equality.Semantic.DeepEqual(r.before.Spec, cr.Spec) {
		return nil
	}
	if err := r.host.Patch(ctx, cr, client.MergeFrom(r.before), patchOptions(dry)...); err != nil || dry {
		return err
	}
	r.journal.did("the changes of registration "+r.name, "kubectl edit clusterregistration "+r.name, func(ctx context.Context) error {
		was := cr.DeepCopy()
		was.Spec = r.before.Spec
		return r.host.Patch(ctx, was, client.MergeFrom(cr), fieldOwner)
	})
	return nil
}

func createOptions(dry bool) []client.CreateOption {
	if dry {
		return []client.CreateOption{fieldOwner, client.DryRunAll}
	}
	return []client.CreateOption{fieldOwner}
}

func patchOptions(dry bool) []client.PatchOption {
	if dry {
		return []client.PatchOption{fieldOwner, client.DryRunAll}
	}
	return []client.PatchOption{fieldOwner}
}

// withdraw deletes a registration that this run has made and waits until it is
// gone: while it is there, the manager needs the Secret.
func (r *run) withdraw(ctx context.Context, cr *v1alpha1.ClusterRegistration) error {
	if err := r.host.Delete(ctx, cr, client.Preconditions{UID: &cr.UID}); err != nil {
		return client.IgnoreNotFound(err)
	}
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var now v1alpha1.ClusterRegistration
		err := r.host.Get(ctx, client.ObjectKeyFromObject(cr), &now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != cr.UID {
			return true, nil
		}
		return false, err
	})
}
