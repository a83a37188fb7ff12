package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/machine"
)

// Parts and values of admission.
const (
	partNoPolicies = "no admission policies"
	partFewRules   = "2 registrations with rules"
	partManyRules  = "200 registrations with different rules"

	bindingCPU    = "API server CPU ms to bind a Pod to the host's own node"
	otherPodCPU   = "API server CPU ms to create a Pod for the host's own nodes"
	virtualPodCPU = "API server CPU ms to create a Pod that tolerates virtual nodes"
)

// The numbers of registrations in the parts of admission.
const (
	fewRules  = 2
	manyRules = 200
)

// admission measures what the host's admission policies cost Pods with which Xylem has nothing to do: the processor
// time of the host's API server, and the time until it responds. All requests but the first are dry runs.
// No rule admits the Pods' namespace, so steering excludes all members.
func (b *bench) admission(ctx context.Context) error {
	r, err := b.bare(ctx, 0)
	if err != nil {
		return err
	}
	host := r.x.Fleet.Host
	if _, err := r.x.Kubectl(ctx, r.x.Host.Cluster, "apply", "--server-side", "-k", r.x.Root("config", "steering")); err != nil {
		return err
	}
	client, err := unlimited(host)
	if err != nil {
		return err
	}
	if err := ready(ctx, host); err != nil {
		return err
	}
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the service account that Pods need: %w", err)
	}
	waiting, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, admitted("waiting", nil), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the Pod to bind: %w", err)
	}
	registered := 0
	for _, step := range []struct {
		part  string
		rules int
	}{{partFewRules, fewRules}, {partManyRules, manyRules}} {
		for ; registered < step.rules; registered++ {
			if err := r.x.Host.API.Create(ctx, ruled(registered)); err != nil {
				return fmt.Errorf("create a registration: %w", err)
			}
		}
		if err := r.published(ctx, client, registered); err != nil {
			return err
		}
		if err := r.admit(ctx, client, step.part, registered, waiting); err != nil {
			return err
		}
	}
	// This is the last part: once the last policy with parameters of a built-in kind is gone, an API server never reads
	// these parameters again (see "Members for some namespaces" in the chart's OPERATIONS.md).
	if _, err := lawless(ctx, host); err != nil {
		return err
	}
	if err := r.admit(ctx, client, partNoPolicies, 0, waiting); err != nil {
		return err
	}
	return b.close(ctx)
}

// ruled returns a registration that admits only namespaces that its team owns. Its member does not exist.
func ruled(i int) *v1alpha1.ClusterRegistration {
	name := fmt.Sprintf("ruled-%03d", i)
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cr.Spec.KubeconfigSecretRef.Name = name
	cr.Spec.Namespaces = v1alpha1.NamespacesSpec{Allow: []string{name + "-*"}, MatchLabels: map[string]string{"team": name}}
	return cr
}

// published waits until the manager has published the rules of so many registrations.
func (r *rig) published(ctx context.Context, client kubernetes.Interface, registrations int) error {
	return r.await(ctx, "published rules", registrations, func() int {
		driver, err := client.StorageV1().CSIDrivers().Get(ctx, v1alpha1.ProvisionerName, metav1.GetOptions{})
		if err != nil {
			return 0
		}
		return strings.Count(driver.Annotations[v1alpha1.AnnotationNamespaceRules], ","+v1alpha1.DefaultNodeNamePrefix+"ruled-")
	})
}

// admitted returns a Pod that no scheduler takes.
func admitted(name string, tolerations []corev1.Toleration) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: "nobody", Tolerations: tolerations, Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app:v1"}}}}
}

// excluded returns how many members the policy in config/steering has excluded for a Pod.
func excluded(pod *corev1.Pod) (n int) {
	if pod == nil || pod.Spec.Affinity == nil {
		return 0
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			n += len(e.Values)
		}
	}
	return n
}

// admit measures one part of admission. The rules of so many registrations are published.
func (r *rig) admit(ctx context.Context, client kubernetes.Interface, name string, rules int, waiting *corev1.Pod) error {
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	create := func(want int, tolerations ...corev1.Toleration) func(context.Context) error {
		return func(ctx context.Context) error {
			pod, err := pods.Create(ctx, admitted("new", tolerations), dryRun)
			if n := excluded(pod); err == nil && n != want {
				err = fmt.Errorf("the Pod's affinity excludes %d members, want %d", n, want)
			}
			return err
		}
	}
	tolerated := corev1.Toleration{Key: v1alpha1.DefaultTaintKey, Operator: corev1.TolerationOpExists}
	// The API server applies a change of the rules after it has accepted it.
	if err := harness.Await(ctx, "applied rules", create(rules, tolerated)); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	run := part{scenario: admissionName, repeat: 1}.run(r, name)
	for _, request := range []struct {
		what string
		send func(context.Context) error
	}{
		{bindingCPU, func(ctx context.Context) error {
			return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: waiting.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: r.x.Fleet.Host.Name() + "-node"}}, dryRun)
		}},
		{otherPodCPU, create(0)},
		{virtualPodCPU, create(rules, tolerated)},
	} {
		for range r.b.admissions / 4 { // policies are compiled when they are used
			if err := request.send(ctx); err != nil {
				return fmt.Errorf("%s: %w", request.what, err)
			}
		}
		api := r.x.Fleet.Host.Process(controlplane.APIServer).PID()
		before, _ := machine.ReadProcess(api)
		var took []time.Duration
		for range r.b.admissions {
			begin := time.Now()
			if err := request.send(ctx); err != nil {
				return fmt.Errorf("%s: %w", request.what, err)
			}
			took = append(took, time.Since(begin))
		}
		after, running := machine.ReadProcess(api)
		if !running {
			return errors.New("the host's API server has ended")
		}
		run.Values[request.what] = (after.CPU - before.CPU).Seconds() * 1000 / float64(r.b.admissions)
		run.Times[strings.ReplaceAll(request.what, "API server CPU ms", "time")] = distribution(took)
		r.b.say("      %s: %.2f; p50 %.2f ms", request.what, run.Values[request.what], distribution(took).P50)
	}
	r.b.report.add(run)
	return nil
}
