package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// nativeSpace is the member's namespace in which the example runs without Xylem.
const nativeSpace = "single-cluster"

// timing is how long it took from the claim's creation until the claim was bound and its Pod ran.
type timing struct{ bound, running time.Duration }

// timing returns the example's times in a namespace of a cluster.
func (d *demo) timing(since time.Time, v *view, namespace string) timing {
	claim := object{v.column, kindClaim, namespace, nginxClaim}
	from, ok := d.timeline.when(since, claim, created)
	if !ok {
		return timing{}
	}
	var t timing
	if at, ok := d.timeline.when(since, claim, bound); ok {
		t.bound = at.Sub(from)
	}
	if at, ok := d.timeline.when(since, object{v.column, kindPod, namespace, ""}, running); ok {
		t.running = at.Sub(from)
	}
	return t
}

// native applies the same claim and Deployment directly in a member, without Xylem, for comparison.
func (d *demo) native(ctx context.Context) error {
	d.out.section("For comparison: the same example in " + pinned + ", without Xylem")
	m := d.members[0]
	sample, err := os.ReadFile(filepath.Join(d.root, "config/samples/nginx.yaml"))
	if err != nil {
		return fmt.Errorf("read the sample: %w", err)
	}
	manifest := strings.NewReplacer(space, nativeSpace, v1alpha1.DefaultNodeNamePrefix+pinned, m.NodeNames()[0]).Replace(string(sample))
	file, err := d.write("single-cluster.yaml", []byte(manifest))
	if err != nil {
		return err
	}
	d.out.line("   (the same sample, in namespace %s, on node %s)", nativeSpace, m.NodeNames()[0])
	begin := time.Now()
	if err := d.do(ctx, m, "apply", "-f", file); err != nil {
		return err
	}
	for _, c := range []condition{d.claimBound(m, nativeSpace, nginxClaim), d.podRunning(m, nativeSpace, nginxApp)} {
		if err := d.await(ctx, c.expected, func(context.Context) (string, error) { return c.lacking() }); err != nil {
			return err
		}
	}
	// The timeline's handlers may run slightly after the listers observe the state.
	err = d.await(ctx, "the times of the claim and the Pod", func(context.Context) (string, error) {
		if d.figures.native = d.timing(begin, m, nativeSpace); d.figures.native.bound == 0 || d.figures.native.running == 0 {
			return "not observed yet", nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	d.out.line("   claim Bound after %s, Pod Running after %s", seconds(d.figures.native.bound), seconds(d.figures.native.running))
	if _, err := d.kubectl(ctx, m, "delete", "namespace", nativeSpace, "--wait=false"); err != nil {
		return err
	}
	return d.await(ctx, "the disk without Xylem deleted", func(context.Context) (string, error) {
		book, err := m.Ledger()
		if err != nil {
			return "", err
		}
		if n := len(book.ForClaim(nativeSpace, nginxClaim).Live()); n > 0 {
			return "it still exists", nil
		}
		return "", nil
	})
}
