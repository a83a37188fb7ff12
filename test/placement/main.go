// Command placement starts a host and three members (one full, one broken, one healthy),
// creates claims with Pods, and prints where they were placed and how long it took.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	class     = "roaming"
	namespace = "placement"
	// room is the number of claims for which the full member has capacity.
	room = 10
)

func main() {
	ctrl.SetLogger(logr.Discard())
	claims := flag.Int("claims", 100, "Number of claims, each with a Pod.")
	timeout := flag.String("timeout", "5s", "The class's placement timeout.")
	patience := flag.Duration("patience", 4*time.Minute, "Maximum time to wait until all Pods run.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *claims, *timeout, *patience)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "placement:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, claims int, timeout string, patience time.Duration) error {
	full := controlplane.DefaultStorage()
	full.CapacityBytes = room << 30
	x, err := harness.Start(ctx, harness.Options{Members: []controlplane.ClusterOptions{
		{Name: "full", Storage: full}, {Name: "broken"}, {Name: "healthy"},
	}})
	if err != nil {
		return err
	}
	defer func() { _ = x.Stop(context.WithoutCancel(ctx)) }()
	if err := x.Fleet.Member("broken").SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Code: codes.Internal, Message: "the array is on fire"}); err != nil {
		return err
	}
	if err := prepare(ctx, x, timeout); err != nil {
		return err
	}
	begun := time.Now()
	for i := range claims {
		name := fmt.Sprintf("data-%03d", i)
		if err := x.Host.Create(ctx, harness.Claim(namespace, name, class), harness.Pod(namespace, name, name)); err != nil {
			return err
		}
	}
	return watch(ctx, x, claims, begun, patience)
}

func prepare(ctx context.Context, x *harness.Xylem, timeout string) error {
	if err := x.Host.Create(ctx, harness.HostClass(class, map[string]string{v1alpha1.ParameterPlacementTimeout: timeout})); err != nil {
		return err
	}
	if err := x.Host.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	return harness.Await(ctx, "the members' capacity", func(ctx context.Context) error {
		var published storagev1.CSIStorageCapacityList
		if err := x.Host.API.List(ctx, &published, client.InNamespace(v1alpha1.DefaultNamespace)); err != nil {
			return err
		}
		of := 0
		for i := range published.Items {
			if published.Items[i].StorageClassName == class {
				of++
			}
		}
		if of < 3 {
			return fmt.Errorf("%d members publish capacity for class %s, want 3", of, class)
		}
		return nil
	})
}

// watch checks every 200 ms which Pods are running. It prints the table when all Pods are running,
// or after patience.
func watch(ctx context.Context, x *harness.Xylem, claims int, begun time.Time, patience time.Duration) error {
	ran := map[string]time.Duration{}
	where := map[string][]time.Duration{}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for len(ran) < claims && time.Since(begun) < patience {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		var pods corev1.PodList
		if err := x.Host.API.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list Pods: %w", err)
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if _, known := ran[p.Name]; !known && p.Status.Phase == corev1.PodRunning {
				ran[p.Name] = time.Since(begun)
				where[p.Spec.NodeName] = append(where[p.Spec.NodeName], ran[p.Name])
			}
		}
	}
	return table(ctx, x, claims, len(ran), where)
}

func table(ctx context.Context, x *harness.Xylem, claims, running int, where map[string][]time.Duration) error {
	fmt.Printf("%-10s %8s %6s %10s %10s %10s\n", "member", "running", "disks", "first", "median", "last")
	for _, m := range x.Members() {
		book, err := m.Ledger()
		if err != nil {
			return err
		}
		took := where["kosmos-"+m.Name()]
		slices.SortFunc(took, cmp.Compare[time.Duration])
		if len(took) == 0 {
			fmt.Printf("%-10s %8d %6d\n", m.Name(), 0, len(book.Live()))
			continue
		}
		fmt.Printf("%-10s %8d %6d %9.1fs %9.1fs %9.1fs\n", m.Name(), len(took), len(book.Live()),
			took[0].Seconds(), took[len(took)/2].Seconds(), took[len(took)-1].Seconds())
	}
	var events corev1.EventList
	if err := x.Host.API.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	moves := 0
	for i := range events.Items {
		if events.Items[i].Reason == "PlacementMoved" && events.Items[i].InvolvedObject.Kind == "Pod" {
			moves++
		}
	}
	fmt.Printf("%d of %d Pods run; %d moves\n", running, claims, moves)
	if running < claims {
		return fmt.Errorf("%d Pods are not running", claims-running)
	}
	return nil
}
