package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// register registers the members, each with a Secret that contains a kubeconfig and a
// ClusterRegistration that refers to it.
func (d *demo) register(ctx context.Context) error {
	d.out.section("Registering the members: a Secret and a ClusterRegistration each")
	d.out.line("   (the kubeconfig has a token of the member's %s, with only its permissions)", harness.MemberUser)
	d.out.line("   (each registration is config/samples/clusterregistration.yaml, with its name)")
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.awaitRegistrations(groupCtx) })
	group.Go(func() error {
		for _, m := range d.members {
			if err := d.registerOne(groupCtx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := d.printTable(ctx, d.host, "get", "clusterregistrations"); err != nil {
		return err
	}
	before, err := d.mark(ctx)
	if err != nil {
		return err
	}
	if err := d.do(ctx, d.host, applySample("storageclass.yaml")...); err != nil {
		return err
	}
	_, err = d.settle(ctx, before)
	return err
}

// registerOne creates the Secret and the ClusterRegistration for one member.
func (d *demo) registerOne(ctx context.Context, m *view) error {
	kubeconfig, err := d.x.MemberKubeconfig(ctx, m.Name())
	if err != nil {
		return err
	}
	file, err := d.write(m.Name()+".member.kubeconfig", kubeconfig)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(d.root, "config/samples/clusterregistration.yaml"))
	if err != nil {
		return fmt.Errorf("read the sample: %w", err)
	}
	manifest, err := d.write(m.Name()+".yaml", []byte(strings.ReplaceAll(string(content), pinned, m.Name())))
	if err != nil {
		return err
	}
	if err := d.do(ctx, d.host, "-n", v1alpha1.DefaultNamespace, "create", "secret", "generic", m.Name()+"-kubeconfig", "--from-file=kubeconfig="+file); err != nil {
		return err
	}
	return d.do(ctx, d.host, "apply", "-f", manifest)
}

// awaitRegistrations waits until every member is Ready, and prints how long each condition took to
// become True.
func (d *demo) awaitRegistrations(ctx context.Context) error {
	begin, seen := map[string]time.Time{}, map[string]time.Duration{}
	conditions := []string{v1alpha1.ConditionConnected, v1alpha1.ConditionSynced, v1alpha1.ConditionNodeReady, v1alpha1.ConditionReady}
	err := d.await(ctx, "every member Connected and Ready", func(ctx context.Context) (string, error) {
		var lacking []string
		for _, m := range d.members {
			var r v1alpha1.ClusterRegistration
			if err := d.x.Host.API.Get(ctx, client.ObjectKey{Name: m.Name()}, &r); apierrors.IsNotFound(err) {
				lacking = append(lacking, m.Name()+" is not registered yet")
				continue
			} else if err != nil {
				return "", err
			}
			if begin[m.Name()].IsZero() {
				begin[m.Name()] = time.Now()
			}
			for _, kind := range conditions {
				condition := meta.FindStatusCondition(r.Status.Conditions, kind)
				switch {
				case condition == nil:
					lacking = append(lacking, m.Name()+" lacks condition "+kind)
				case condition.Status != metav1.ConditionTrue:
					lacking = append(lacking, fmt.Sprintf("%s %s=%s %s: %s", m.Name(), kind, condition.Status, condition.Reason, condition.Message))
				case seen[m.Name()+kind] == 0:
					seen[m.Name()+kind] = time.Since(begin[m.Name()])
				}
			}
		}
		return strings.Join(lacking, "; "), nil
	})
	if err != nil {
		return err
	}
	var details []string
	for _, m := range d.members {
		detail := m.Name() + ":"
		for _, kind := range conditions {
			detail += fmt.Sprintf(" %s after %.1f s,", kind, seen[m.Name()+kind].Seconds())
		}
		d.out.line("   %s", strings.TrimSuffix(detail, ","))
		details = append(details, fmt.Sprintf("%.1f s", seen[m.Name()+v1alpha1.ConditionReady].Seconds()))
	}
	d.checks.pass("members: registered, Connected and Ready", "after "+strings.Join(details, " and "))
	return nil
}

// awaitCounts waits until each registration reports as many bound volumes as its member has disks.
func (d *demo) awaitCounts(ctx context.Context) error {
	var counts []string
	err := d.await(ctx, "the registrations to count their volumes", func(ctx context.Context) (string, error) {
		counts = nil
		for _, m := range d.members {
			var r v1alpha1.ClusterRegistration
			if err := d.x.Host.API.Get(ctx, client.ObjectKey{Name: m.Name()}, &r); err != nil {
				return "", err
			}
			book, err := m.Ledger()
			if err != nil {
				return "", err
			}
			disks := len(book.Live())
			if want := (v1alpha1.VolumeCounts{Bound: int32(disks)}); r.Status.Volumes != want { //nolint:gosec // A handful.
				return fmt.Sprintf("%s reports %+v; it has %d disks", m.Name(), r.Status.Volumes, disks), nil
			}
			counts = append(counts, fmt.Sprintf("%d in %s", disks, m.Name()))
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	d.checks.pass("status: the registrations count all volumes", strings.Join(counts, ", "))
	return nil
}
