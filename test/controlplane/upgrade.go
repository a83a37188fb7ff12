package controlplane

import (
	"context"
	"fmt"
)

// Upgrade replaces kube-apiserver, and then kube-controller-manager and kube-scheduler, with those
// of another minor version. etcd, the arguments and the addresses stay the same. In between, the
// API server does not respond. Wipe and Restore keep the version. "" is the version of test/kube.
func (c *Cluster) Upgrade(ctx context.Context, version string) error {
	programs, err := c.programs.of(version)
	if err != nil {
		return err
	}
	c.programs, c.options.Version = programs, version
	for _, names := range [][]ProcessName{{APIServer}, {ControllerManager, Scheduler}} {
		for _, name := range names {
			if p := c.Process(name); p != nil {
				if err := p.replace(ctx, programs.path(string(name))); err != nil {
					return fmt.Errorf("upgrade %s: %w", c.Name(), err)
				}
			}
		}
		if err := c.startAll(ctx, names...); err != nil {
			return fmt.Errorf("upgrade %s: %w", c.Name(), err)
		}
	}
	return c.awaitUsable(ctx)
}

// replace stops the process. The next start runs the program at path.
func (p *Process) replace(ctx context.Context, path string) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path = path
	return nil
}
